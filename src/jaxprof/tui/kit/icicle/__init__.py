"""The flame graph as screens show it: frames laid out in columns, a view of them to walk in, the widget, its pane."""

// A canvas whose horizontal range can be dragged, pinched, zoomed with ctrl and the wheel, or moved with keys and buttons.
// `shown` has what to draw: height(); draw(context, view, width); at(x, y, view, width) returns the item at a point, or
// null; words(item) describes an item; range(item) is its part of 0..1.
const viewport = (box, shown) => {
  const NARROWEST = 1e-7, CLICK = 4;
  const canvas = document.createElement("canvas");
  canvas.className = "own";
  canvas.tabIndex = 0;
  const said = document.createElement("div");
  said.className = "said";
  said.setAttribute("aria-live", "polite");
  const tools = document.createElement("div");
  tools.className = "tools";
  const [from, to] = JSON.parse(box.dataset.view ?? "[0, 1]");
  const view = { from, to, chosen: null };
  const width = box.clientWidth;
  let waiting = false;

  const draw = () => {
    waiting = false;
    const scale = window.devicePixelRatio || 1, height = shown.height();
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    shown.draw(context, view, width);
    canvas.dataset.from = view.from;
    canvas.dataset.to = view.to;
    if (view.to - view.from < 1) box.dataset.view = JSON.stringify([view.from, view.to]);
    else delete box.dataset.view;
  };
  const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

  const look = (from, to) => {
    const span = Math.min(1, Math.max(NARROWEST, to - from));
    view.from = Math.min(Math.max(0, from), 1 - span);
    view.to = view.from + span;
    redraw();
  };
  const zoom = (factor, at = 0.5) => {
    const span = view.to - view.from, middle = view.from + span * at;
    const next = Math.min(1, Math.max(NARROWEST, span * factor));
    look(middle - next * at, middle - next * at + next);
  };
  const pan = (share) => { const span = view.to - view.from; look(view.from + share * span, view.to + share * span); };
  const whole = () => { view.chosen = null; said.textContent = ""; look(0, 1); };
  const into = (item) => look(...shown.range(item));

  const choose = (item) => {
    if (item === null) { view.chosen = null; said.textContent = ""; redraw(); return; }
    if (item === view.chosen) into(item);
    view.chosen = item;
    said.textContent = shown.words(item);
    redraw();
  };

  const pointers = new Map();
  let moved = 0, apart = 0;
  const place = (event) => { const frame = canvas.getBoundingClientRect(); return [event.clientX - frame.left, event.clientY - frame.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    moved = 0;
    apart = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event), before = pointers.get(event.pointerId);
    if (before === undefined) {
      const item = shown.at(x, y, view, width);
      if (item !== null) said.textContent = shown.words(item);
      else if (view.chosen === null) said.textContent = "";
      return;
    }
    pointers.set(event.pointerId, [x, y]);
    const held = [...pointers.values()];
    if (held.length > 1) {
      const distance = Math.max(10, Math.abs(held[0][0] - held[1][0]));
      if (apart) zoom(apart / distance, (held[0][0] + held[1][0]) / 2 / width);
      apart = distance;
      moved = Infinity;
      return;
    }
    moved += Math.abs(x - before[0]);
    if (moved > CLICK) pan((before[0] - x) / width);
  });
  const release = (event) => {
    const was = pointers.delete(event.pointerId);
    if (was && event.type === "pointerup" && moved <= CLICK) choose(shown.at(...place(event), view, width));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(Math.sign(event.deltaY) * 0.25), place(event)[0] / width);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan(event.deltaX / width);
    }
  }, { passive: false });
  const keys = {
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
    0: whole, Escape: whole, Enter: () => { if (view.chosen !== null) into(view.chosen); },
  };
  canvas.addEventListener("keydown", (event) => {
    if (keys[event.key] === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  const actions = [["−", "zoom out", keys["-"]], ["+", "zoom in", keys["+"]], ["←", "to the left", keys.ArrowLeft],
    ["→", "to the right", keys.ArrowRight], ["all", "show all", whole]];
  for (const [name, title, action] of actions) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.title = title;
    button.setAttribute("aria-label", title);
    button.addEventListener("click", action);
    tools.append(button);
  }
  const hint = document.createElement("span");
  hint.textContent = "drag to move; ctrl and the wheel, or two fingers, to zoom; click twice to zoom in";
  tools.append(hint);
  box.append(canvas, said, tools);
  draw();
};

// The colour of a name: the same everywhere on the page.
const hueOf = (name) => {
  let sum = 0;
  for (let at = 0; at < name.length; at += 1) sum = (sum * 31 + name.charCodeAt(at)) >>> 0;
  return sum % 360;
};
const shadeOf = (name) => `hsl(${hueOf(name)} 45% ${plots.colour("--hue-light")})`;

// The text, cut so that it fits; empty if not even three characters fit.
const fitted = (context, text, room) => {
  if (room < 18) return "";
  if (context.measureText(text).width <= room) return text;
  const kept = Math.floor(room / 6) - 1;
  return kept < 3 ? "" : `${text.slice(0, kept)}…`;
};

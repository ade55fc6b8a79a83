"""Program texts behind the HLO screen: documents, ways through them, searches, stages, rows of kernels. No widgets."""

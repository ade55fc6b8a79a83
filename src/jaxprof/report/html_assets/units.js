"use strict";
// Quantities as text, as jaxprof/units.py writes them.
const units = (() => {
  const digits = (value, significant) => {
    if (value === 0) return "0";
    const decimals = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(value))));
    const text = value.toFixed(decimals);
    const whole = text.replace("-", "").split(".")[0];
    return decimals && whole.length + decimals > significant && whole !== "0" ? value.toFixed(decimals - 1) : text;
  };
  const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
  const seconds = (value, significant = 3) => {
    if (!known(value)) return "-";
    if (value < 0) return "-" + seconds(-value, significant);
    if (value >= 3600) {
      const minutes = Math.round(value / 60);
      return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
    }
    if (value >= 120) {
      const whole = Math.round(value);
      return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
    }
    if (value > 0 && value < 0.5e-9) return "< 1 ns";
    for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]) {
      if (value >= scale * 0.99995) return `${digits(value / scale, significant)} ${unit}`;
    }
    return `${digits(value / 1e-9, significant)} ns`;
  };
  const bytes = (value) => {
    if (!known(value)) return "-";
    const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let scaled = value, unit = 0;
    while (Math.abs(scaled) >= 1024 && unit < names.length - 1) { scaled /= 1024; unit += 1; }
    if (unit === 0) return `${scaled.toFixed(0)} B`;
    return `${digits(scaled, Math.max(3, String(Math.trunc(Math.abs(scaled))).length))} ${names[unit]}`;
  };
  const scaled = (value, unit = "") => {
    if (!known(value)) return "-";
    let size = value, step = 0;
    const steps = ["", "k", "M", "G", "T", "P", "E"];
    while (Math.abs(size) >= 999.5 && step < steps.length - 1) { size /= 1000; step += 1; }
    const number = step === 0 && size === Math.trunc(size) ? size.toFixed(0) : digits(size, 3);
    const suffix = steps[step] + unit;
    return suffix ? `${number} ${suffix}` : number;
  };
  const percent = (fraction) => {
    if (!known(fraction)) return "-";
    const value = fraction * 100;
    if (value > 0 && value < 0.001) return "under 0.001 %";
    return value >= 99.5 ? `${value.toFixed(0)} %` : `${digits(value, 2)} %`;
  };
  const of = { seconds, bytes, count: (value) => scaled(value) };
  return { seconds, bytes, scaled, percent, of };
})();

"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const root = document.documentElement;
  let unit = 0; // index into each run's units

  // Theme: the system's, until the button says otherwise.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (isDark) => { root.dataset.theme = isDark ? "dark" : "light"; };
  setTheme(dark.matches);
  dark.addEventListener("change", (e) => setTheme(e.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme !== "dark"));

  // Building blocks.
  const svgNS = "http://www.w3.org/2000/svg";
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(svgNS, tag), attributes, children);
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const number = (v) => v.toLocaleString("en-US", { maximumFractionDigits: v < 10 ? 1 : 0 });
  const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(1) + " %" : "–";
  function duration(s) {
    if (s < 1) return s === 0 ? "0s" : s.toFixed(2) + "s";
    const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
    const first = parts.findIndex(([size]) => s >= size);
    const [size, name] = parts[first];
    const whole = Math.floor(s / size), next = parts[first + 1];
    const rest = next ? Math.floor((s - whole * size) / next[0]) : 0;
    return whole + name + (rest ? " " + rest + next[1] : "");
  }
  const colour = (share) => share.colour < 0 ? "var(--other)" : `var(--s${share.colour})`;
  const hatch = (share) => `url(#hatch${share.colour < 0 ? "-other" : share.colour})`;
  const sum = (series, i) => series.reduce((total, values) => total + values[i], 0);
  const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);

  // Patterns of what is borrowed: the share's colour in stripes.
  const patterns = svg("svg", { width: 0, height: 0, style: "position:absolute", "aria-hidden": "true" });
  for (const [id, paint] of [["-other", "var(--other)"], ...[0, 1, 2, 3, 4, 5, 6].map((i) => [i, `var(--s${i})`])]) {
    patterns.append(svg("pattern", { id: "hatch" + id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { width: 6, height: 6, style: `fill:${paint};opacity:.28` }),
      svg("rect", { width: 2.4, height: 6, style: `fill:${paint}` })));
  }
  document.body.append(patterns);

  // Axes. All charts over time have the same one.
  const end = most(data.runs.map((run) => run.step * run.steps)) || 1;
  const margin = { left: 46, right: 10, top: 8, bottom: 22 };
  function ticks(limit, wanted) {
    const raw = limit / wanted, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    return Array.from({ length: Math.floor(limit / step + 1e-9) + 1 }, (_, i) => i * step);
  }
  function timeTicks(wanted) {
    const steps = [1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 28 * 86400, 91 * 86400, 365 * 86400];
    const step = steps.find((s) => end / s <= wanted) || end / wanted;
    return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
  }
  function frame(width, height, limit, label) {
    const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
    const x = (t) => margin.left + inner.width * t / end;
    const y = (v) => margin.top + inner.height * (1 - v / limit);
    const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    for (const v of ticks(limit, 4)) {
      chart.append(svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(v), y2: y(v) }),
        svg("text", { x: margin.left - 6, y: y(v) + 4, "text-anchor": "end" }, v.toLocaleString("en-US")));
    }
    for (const t of timeTicks(width / 80)) {
      const anchor = x(t) > width - 24 ? "end" : "middle"; // the last one would be cut
      chart.append(svg("text", { x: anchor === "end" ? width : x(t), y: height - 6, "text-anchor": anchor }, duration(t)));
    }
    chart.append(svg("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: y(0), y2: y(0) }));
    return { chart, x, y, inner };
  }

  // A layer is the area between two series, in steps.
  function area(run, x, y, low, high) {
    let up = "", down = "";
    for (let i = 0; i < run.steps; i++) {
      const x0 = x(i * run.step).toFixed(1), x1 = x((i + 1) * run.step).toFixed(1);
      up += (i ? "V" : `M${x0} `) + y(high[i]).toFixed(1) + "H" + x1;
      down = `H${x0}V${i ? y(low[i - 1]).toFixed(1) : y(low[0]).toFixed(1)}` + down;
    }
    return up + "V" + y(low[run.steps - 1]).toFixed(1) + down + "Z";
  }

  // Hover: a line at the time, and what the run was then.
  function hover(chart, run, x, y0, y1, tell) {
    const cursor = svg("line", { class: "cursor", y1: y0, y2: y1, visibility: "hidden" });
    const box = chart.viewBox.baseVal;
    const hit = svg("rect", { class: "hit", x: x(0), y: y0, width: Math.max(0, x(end) - x(0)), height: y1 - y0 });
    hit.addEventListener("pointermove", (e) => {
      const at = (e.clientX - chart.getBoundingClientRect().left) * box.width / chart.clientWidth;
      const t = (at - x(0)) / (x(end) - x(0)) * end, i = Math.floor(t / run.step);
      if (i < 0 || i >= run.steps) return hide();
      cursor.setAttribute("x1", at); cursor.setAttribute("x2", at);
      cursor.setAttribute("visibility", "visible");
      show(e, tell(i));
    });
    const hide = () => { cursor.setAttribute("visibility", "hidden"); tip.hidden = true; };
    hit.addEventListener("pointerleave", hide);
    chart.append(cursor, hit);
  }
  function show(e, content) {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, e.clientX + 16 + width > innerWidth ? e.clientX - width - 12 : e.clientX + 16) + "px";
    tip.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - height - 6)) + "px";
  }
  const swatch = (paint) => svg("svg", { width: 12, height: 12 }, svg("rect", { width: 12, height: 12, rx: 2, style: `fill:${paint}` }));
  const rows = (lines) => html("table", {}, ...lines.map(([name, ...values]) =>
    html("tr", {}, html("th", {}, ...(Array.isArray(name) ? name : [name])), ...values.map((v) => html("td", { class: "number" }, v)))));
  const span = (run, i) => html("strong", {}, `${duration(i * run.step)} to ${duration((i + 1) * run.step)}`);

  // Utilization: what every share holds of its own, then what it borrows, up to the capacity.
  function utilization(run, width) {
    const of = run.units[unit], limit = most(data.runs.map((r) => Math.max(r.units[unit].capacity, most(r.units[unit].shares.length ? Array.from({ length: r.steps }, (_, i) => sum(r.units[unit].shares.flatMap((s) => [s.owned, s.borrowed]), i)) : [0])))) * 1.04 || 1;
    const height = Math.max(220, Math.min(320, width * .5));
    const { chart, x, y } = frame(width, height, limit, `Utilization of ${of.unit} over time under ${run.name}`);
    let low = new Array(run.steps).fill(0);
    for (const kind of ["owned", "borrowed"]) {
      for (const s of of.shares) {
        const high = low.map((v, i) => v + s[kind][i]);
        if (most(s[kind]) > 0) {
          chart.append(svg("path", { class: "layer", "data-share": s.colour, d: area(run, x, y, low, high), style: `fill:${kind === "owned" ? colour(s) : hatch(s)}` }));
        }
        low = high;
      }
    }
    chart.append(svg("line", { class: "limit", x1: x(0), x2: x(end), y1: y(of.capacity), y2: y(of.capacity) }));
    hover(chart, run, x, margin.top, height - margin.bottom, (i) => {
      const owned = sum(of.shares.map((s) => s.owned), i), borrowed = sum(of.shares.map((s) => s.borrowed), i);
      return [span(run, i), rows([
        ["", of.unit, ""],
        ["owned", number(owned), percent(owned, of.capacity)],
        ["borrowed", number(borrowed), percent(borrowed, of.capacity)],
        ["idle", number(Math.max(0, of.capacity - owned - borrowed)), percent(Math.max(0, of.capacity - owned - borrowed), of.capacity)],
        ...of.shares.filter((s) => s.owned[i] + s.borrowed[i] > 0).map((s) =>
          [[swatch(colour(s)), " " + s.name], number(s.owned[i]), s.borrowed[i] ? `+ ${number(s.borrowed[i])}` : ""]),
      ])];
    });
    return chart;
  }

  // One strip for each share: what it holds against its quota.
  function strips(run, width) {
    const of = run.units[unit], height = 42, left = 110;
    const x = (t) => left + (width - left - margin.right) * t / end;
    const list = html("div");
    for (const s of of.strips) {
      const limit = most(data.runs.map((r) => {
        const same = r.units[unit].strips.find((o) => o.name === s.name);
        return same ? Math.max(same.quota, most(same.owned.map((v, i) => v + same.borrowed[i]))) : 0;
      })) * 1.06 || 1;
      const y = (v) => height - 3 - (height - 6) * v / limit;
      const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${s.name} against its quota under ${run.name}` });
      const zero = new Array(run.steps).fill(0), total = s.owned.map((v, i) => v + s.borrowed[i]);
      chart.append(svg("text", { class: "name", x: 0, y: 17 }, s.name.length > 15 ? s.name.slice(0, 14) + "…" : s.name),
        svg("text", { x: 0, y: 32 }, `quota ${s.quota.toLocaleString("en-US")}`),
        svg("path", { d: area(run, x, y, zero, s.owned), style: `fill:${colour(s)}` }),
        svg("path", { d: area(run, x, y, s.owned, total), style: `fill:${hatch(s)}` }),
        svg("line", { class: "axis", x1: x(0), x2: x(end), y1: y(0), y2: y(0) }),
        svg("line", { class: "quota", x1: x(0), x2: x(end), y1: y(s.quota), y2: y(s.quota) }));
      hover(chart, run, x, 0, height, (i) => [span(run, i), rows([
        [s.name, of.unit], ["holds", number(total[i])], ["borrowed", number(s.borrowed[i])], ["quota", number(s.quota)],
        ["of its own idle", number(Math.max(0, s.quota - s.owned[i]))]])]);
      list.append(chart);
    }
    if (of.more) list.append(html("p", { class: "note" }, `${of.more} more shares, which hold less, are left out.`));
    return list;
  }

  // Waits: for each share, what part of its jobs waited how long.
  function waits(run, width) {
    const left = 110, right = 168, height = 24;
    const list = html("div");
    const text = (x, words, attributes = {}) => svg("text", { x, y: 15, "text-anchor": "end", ...attributes }, words);
    const head = svg("svg", { width, height: 18 });
    ["half", "90 %", "99 %"].forEach((words, i) => head.append(text(width - right + 56 * (i + 1), words, { y: 12 })));
    list.append(head);
    for (const w of run.waits) {
      const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Waits of ${w.name} under ${run.name}: half at most ${duration(w.p50)}, 99 % at most ${duration(w.p99)}` });
      chart.append(svg("text", { class: "name", x: 0, y: 15 }, w.name.length > 15 ? w.name.slice(0, 14) + "…" : w.name));
      const all = w.classes.reduce((a, b) => a + b, 0), inner = width - left - right;
      let at = left;
      w.classes.forEach((n, i) => {
        const size = all ? inner * n / all : 0;
        if (size > 0) chart.append(svg("rect", { x: at, y: 3, width: size, height: height - 6, style: `fill:var(--w${i})` }));
        at += size;
      });
      if (all) [w.p50, w.p90, w.p99].forEach((v, i) => chart.append(text(width - right + 56 * (i + 1), duration(v))));
      else chart.append(svg("text", { x: left, y: 15 }, "none started"));
      const hit = svg("rect", { class: "hit", width, height });
      hit.addEventListener("pointermove", (e) => show(e, [html("strong", {}, `${w.name}: ${all.toLocaleString("en-US")} jobs, mean ${duration(w.mean)}`),
        rows(w.classes.map((n, i) => [[swatch(`var(--w${i})`), " " + data.waitClasses[i]], n.toLocaleString("en-US"), percent(n, all)]))]));
      hit.addEventListener("pointerleave", () => { tip.hidden = true; });
      chart.append(hit);
      list.append(chart);
    }
    return list;
  }

  // Bars over time of one quantity.
  function bars(run, width, key, what, paint) {
    const limit = most(data.runs.map((r) => most(r[key]))) * 1.06 || 1;
    const { chart, x, y } = frame(width, 150, limit, `${what} over time under ${run.name}`);
    const step = run.step * run.steps / run[key].length;
    run[key].forEach((v, i) => {
      if (v > 0) chart.append(svg("rect", { x: x(i * step), y: y(v), width: Math.max(1, x(step) - x(0) - .5), height: y(0) - y(v), style: `fill:${paint}` }));
    });
    const coarse = { step, steps: run[key].length };
    hover(chart, coarse, x, margin.top, 150 - margin.bottom, (i) => [span(coarse, i), rows([["preemptions", number(run.preemptions[i])], [data.unit + "-hours lost", number(run.lost[i])]])]);
    return html("div", {}, html("p", { class: "note" }, what), chart);
  }

  function legend() {
    const entry = (s) => {
      const e = html("span", { tabindex: 0, title: "Point at it to see it alone" }, swatch(colour(s)), s.name);
      const fade = (on) => document.querySelectorAll(".layer").forEach((l) => l.classList.toggle("faded", on && l.dataset.share !== String(s.colour)));
      for (const [event, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) e.addEventListener(event, () => fade(on));
      return e;
    };
    const box = svg("svg", { width: 22, height: 12 }, svg("rect", { x: .5, y: .5, width: 21, height: 11, rx: 2, style: "fill:none;stroke:var(--dim)" }));
    const kind = (paint) => svg("svg", { width: 22, height: 12 }, svg("rect", { width: 22, height: 12, rx: 2, style: `fill:${paint}` }));
    const line = svg("svg", { width: 22, height: 12 }, svg("line", { class: "limit", x1: 0, x2: 22, y1: 6, y2: 6 }));
    const parts = [html("span", {}, kind("var(--other)"), "within the share's quota"), html("span", {}, kind("url(#hatch-other)"), "borrowed"),
      html("span", {}, box, "idle"), html("span", {}, line, "capacity"), html("span", { class: "gap" }), ...data.runs[0].units[unit].shares.map(entry)];
    if (data.runs[0].units.length > 1) {
      const select = html("select", { "aria-label": "Unit" }, ...data.runs[0].units.map((u, i) => html("option", { value: i }, u.unit)));
      select.value = unit;
      select.addEventListener("change", () => { unit = Number(select.value); draw(); });
      parts.unshift(html("span", {}, "Unit", select));
    }
    document.getElementById("legend").replaceChildren(...parts);
    document.getElementById("wait-legend").replaceChildren(...data.waitClasses.map((name, i) => html("span", {}, swatch(`var(--w${i})`), name)));
  }

  // Each section has a column for each run.
  function columns(id, chart) {
    const place = document.getElementById(id);
    place.replaceChildren(...data.runs.map((run) => html("div", {}, ...(data.runs.length > 1 ? [html("h3", {}, run.name)] : []))));
    data.runs.forEach((run, i) => place.children[i].append(...[chart(run, place.children[i].clientWidth)].flat()));
  }
  let drawn = 0;
  function draw() {
    drawn = innerWidth;
    legend();
    columns("utilization-charts", utilization);
    columns("share-charts", strips);
    columns("wait-charts", waits);
    columns("preemption-charts", (run, width) => [
      bars(run, width, "preemptions", "Preemptions", "var(--bar)"),
      bars(run, width, "lost", data.unit + "-hours lost", "var(--loss)")]);
  }
  draw();
  addEventListener("resize", () => { if (innerWidth !== drawn) draw(); });
})();

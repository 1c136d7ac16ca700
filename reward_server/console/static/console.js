/* What pages do in the browser: theme, menu, search, tabs, copying, forms of tools, the editor, keys. No page is built here. */
"use strict";
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const every = (selector, root = document) => [...root.querySelectorAll(selector)];
  const writes = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable;

  function switchTheme() {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
    const theme = isDark ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    document.cookie = `labs_theme=${theme}; path=/console; max-age=31536000; samesite=strict`;
    LabsPlots.all(document);
  }

  function toggle(button) {
    const part = find(button.dataset.toggle);
    button.setAttribute("aria-expanded", String(part.classList.toggle("open")));
  }

  function search(field) {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = every(field.dataset.search).filter((card) => {
      const fits = words.every((word) => card.textContent.toLowerCase().includes(word));
      card.hidden = !fits;
      return fits;
    });
    for (const group of every(".collection")) group.hidden = !find(`${field.dataset.search}:not([hidden])`, group);
    const empty = find("[data-search-empty]");
    if (empty) empty.hidden = found.length > 0;
  }

  function select(tab) {
    for (const each of every("[role=tab]", tab.parentElement)) {
      const isThis = each === tab;
      each.setAttribute("aria-selected", String(isThis));
      each.tabIndex = isThis ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !isThis;
    }
  }

  async function copy(button, text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1200);
  }

  function showOf(chooser) {
    for (const part of every(chooser.dataset.shows)) {
      const isChosen = part.dataset.tool === chooser.value;
      part.hidden = part.disabled = !isChosen;
    }
  }

  /* Lists: j and k move a mark over [data-item], Enter opens it. Transcripts: j and k follow the links of the page. */
  function move(step) {
    const link = find(step > 0 ? "a[rel=next]" : "a[rel=prev]");
    if (link) { link.click(); return; }
    const items = every("[data-item]").filter((each) => !each.hidden && each.offsetParent !== null);
    if (!items.length) return;
    const at = items.findIndex((each) => each.classList.contains("here"));
    if (at >= 0) items[at].classList.remove("here");
    const item = items[Math.min(items.length - 1, Math.max(0, at + step))];
    item.classList.add("here");
    (item.matches("a") ? item : find("a", item)).focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
  }

  const places = { t: "/console", e: "/console/episodes", c: "/console/charts", l: "/console/leaderboard", j: "/console/jobs", h: "/console/health" };
  let awaits = -Infinity;

  function pressed(event) {
    const target = event.target;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && target.matches("[data-send-on-enter]")) {
      event.preventDefault();
      target.form.requestSubmit();
      return;
    }
    if (event.key === "Escape" && writes(target)) {
      if (target.matches("[data-search]")) { target.value = ""; search(target); }
      target.blur();
      return;
    }
    if (target.matches("[role=tab]") && /^Arrow(Left|Right)$/.test(event.key)) {
      const tabs = every("[role=tab]", target.parentElement);
      const next = tabs[(tabs.indexOf(target) + (event.key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
      select(next);
      next.focus();
      return;
    }
    if (writes(target) || event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
    const chosen = find(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (chosen) { event.preventDefault(); chosen.matches("input, textarea") ? chosen.focus() : chosen.click(); return; }
    if (event.timeStamp - awaits < 1200 && places[event.key]) { awaits = -Infinity; location.href = places[event.key]; return; }
    if (event.key === "g") awaits = event.timeStamp;
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "?") find("#keys")?.showModal();
    else if (event.key === "/") { const field = find("[data-focus-key], input[type=search]"); if (field) { event.preventDefault(); field.focus(); } }
  }

  function clicked(event) {
    const on = (selector) => event.target.closest(selector);
    let part;
    if (on("[data-theme-switch]")) switchTheme();
    else if ((part = on("[data-toggle]"))) toggle(part);
    else if ((part = on("[data-open]"))) find(part.dataset.open).showModal();
    else if ((part = on("[role=tab]"))) select(part);
    else if ((part = on("[data-copy-tab]"))) copy(part, find("[role=tabpanel]:not([hidden])", part.closest("[data-tabs]")).textContent);
    else if ((part = on("[data-copy]"))) copy(part, find(part.dataset.copy).textContent);
    else if ((part = on("[data-print]"))) print();
    else if ((part = on("[data-line]"))) goTo(Number(part.dataset.line));
  }

  /* The editor: numbers beside the lines, those with a finding marked; a finding leads to its line. */
  function number(area) {
    const bad = new Set(every("[data-line]").map((each) => each.dataset.line));
    const column = find(".gutter", area.parentElement);
    const lines = area.value.split("\n").map((_, i) => {
      const mark = document.createElement("span");
      mark.textContent = i + 1;
      if (bad.has(String(i + 1))) mark.className = "bad";
      return mark;
    });
    column.replaceChildren(...lines);
    column.scrollTop = area.scrollTop;
  }

  function goTo(line) {
    const area = find("[data-editor]");
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1] || "").length);
    area.scrollTop = Math.max(0, area.scrollHeight * ((line - 5) / lines.length));
  }

  function arrived(root) {
    for (const area of every("[data-editor]")) number(area);
    LabsPlots.all(document);
    for (const part of every("[data-scroll-end]", root)) part.scrollTop = part.scrollHeight;
    const said = every(".talk .said", root);
    if (root.id === "play" && said.length) {
      said[said.length - 1].scrollIntoView({ block: "nearest" });
      find("textarea[data-send-on-enter]", root)?.focus();
    }
    for (const chooser of every("[data-shows]", root)) showOf(chooser);
  }

  function holding(form, isHeld) {
    for (const area of every("textarea[data-send-on-enter]", form)) area.readOnly = isHeld;
  }

  document.addEventListener("click", clicked);
  document.addEventListener("keydown", pressed);
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-search]")) search(event.target);
    if (event.target.matches("[data-editor]")) number(event.target);
  });
  document.addEventListener("scroll", (event) => {
    if (event.target.matches?.("[data-editor]")) find(".gutter", event.target.parentElement).scrollTop = event.target.scrollTop;
  }, true);
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-shows]")) showOf(event.target);
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    const asked = event.submitter?.dataset.confirm;
    if (asked && !confirm(asked)) { event.preventDefault(); event.stopImmediatePropagation(); } // htmx would send it all the same
  }, true);
  document.addEventListener("invalid", (event) => { const part = event.target.closest("details"); if (part) part.open = true; }, true);
  document.addEventListener("htmx:beforeRequest", (event) => {
    const flash = find("#flash");
    if (flash) flash.textContent = "";
    holding(event.target, true); // what is typed now would be lost when the answer comes
  });
  document.addEventListener("htmx:afterRequest", (event) => holding(event.target, false));
  document.addEventListener("htmx:afterSwap", (event) => arrived(event.detail.target));
  document.addEventListener("toggle", (event) => { if (event.target.open) LabsPlots.all(document); }, true);
  let resizing;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => LabsPlots.all(document), 150); });
  document.addEventListener("DOMContentLoaded", () => arrived(document));
})();

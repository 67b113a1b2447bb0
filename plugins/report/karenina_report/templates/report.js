"use strict";
// An item's details lie in a <noscript> as escaped HTML. Without scripts they are simply there; with scripts they are
// text until the item is opened, so that thousands of items cost nothing before.
(() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const items = [...document.querySelectorAll("#list > details.item")];
  const form = document.getElementById("filters");
  const field = (id) => document.getElementById(id);
  const status = field("shown");
  const boxes = [...form.querySelectorAll("input[name=outcome]")];
  let texts = null;

  const fill = (item) => {
    const kept = item.querySelector(":scope > noscript");
    if (kept === null) return;
    const made = document.createElement("template");
    made.innerHTML = kept.textContent;
    kept.replaceWith(made.content);
  };
  const open = (item) => { fill(item); item.open = true; };

  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const decoded = (html) => html.replace(/<[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">")
    .replace(/&#39;/g, "'").replace(/&#34;/g, '"').replace(/&amp;/g, "&");
  const answer = (item) => {
    const kept = item.querySelector(":scope > noscript");
    if (kept === null) return item.querySelector(".answer")?.textContent ?? "";
    const html = kept.textContent, start = html.indexOf('<div class="answer text"');
    return decoded(html.slice(start, html.indexOf("</div>", start)));
  };
  const haystack = (place) => {
    texts ??= items.map(() => null);
    texts[place] ??= plain(items[place].querySelector("summary").textContent.replace(/\s+/g, " ") + "\n" + answer(items[place]));
    return texts[place];
  };

  const wanted = () => ({
    words: (plain(field("text").value).match(/"[^"]+"|\S+/g) ?? []).map((word) => word.replace(/^"|"$/g, "")),
    pair: field("pair").value,
    outcomes: new Set(boxes.filter((box) => box.checked).map((box) => box.value)),
    reason: field("reason")?.value ?? "",
    trait: field("trait")?.value ?? "",
    state: field("state")?.value ?? "",
  });
  const fits = (place, want) => {
    const about = index.items[place];
    if (want.pair !== "" && String(about.p) !== want.pair) return false;
    if (want.outcomes.size && !want.outcomes.has(about.o)) return false;
    if (want.reason !== "" && String(about.f) !== want.reason) return false;
    if (want.trait !== "") {
      const found = about.t.find((trait) => String(trait[0]) === want.trait);
      if (!found) return false;
      if (want.state !== "" && want.state !== `state ${found[1]}` && !(found[1] === "ok" && want.state === `score ${found[2]}`)) return false;
    }
    return want.words.length === 0 || want.words.every((word) => haystack(place).includes(word));
  };
  const apply = () => {
    const want = wanted();
    let count = 0;
    items.forEach((item, place) => {
      const fit = fits(place, want);
      if (item.hidden === fit) item.hidden = !fit;
      count += fit;
    });
    status.textContent = `${count} of ${items.length} items`;
    field("none").hidden = count > 0 || items.length === 0;
  };

  const option = (value, label) => {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = label;
    return made;
  };
  const offerStates = () => {
    const select = field("state");
    if (!select) return;
    const trait = field("trait").value, counts = new Map();
    const add = (key) => counts.set(key, (counts.get(key) ?? 0) + 1);
    if (trait !== "") for (const about of index.items) for (const [name, state, word] of about.t) if (String(name) === trait) {
      add(`state ${state}`);
      if (state === "ok" && word !== "") add(`score ${word}`);
    }
    const sorted = [...counts].sort(([a], [b]) => (a < b ? 1 : -1));
    select.replaceChildren(option("", "any"), ...sorted.map(([key, count]) => option(key, `${key.replace(" ", ": ")} (${count})`)));
    select.disabled = trait === "";
  };

  const target = () => {
    const id = location.hash.slice(1);
    if (!id.startsWith("item-")) return;
    const item = document.getElementById(id) ?? document.getElementById(decodeURIComponent(id));
    if (item === null || !items.includes(item)) return;
    if (item.hidden) {
      item.hidden = false;
      status.textContent += ", and the one that was asked for";
      field("none").hidden = true;
    }
    open(item);
    item.scrollIntoView();
    item.querySelector("summary").focus({ preventScroll: true });
  };

  // What has to be scrolled can be reached with the keyboard; short texts are no stops on the way.
  const reachable = (part) => {
    const texts = [...part.querySelectorAll(".text")].filter((text) => text.scrollHeight > text.clientHeight);
    for (const text of texts) {
      text.tabIndex = 0;
      text.setAttribute("role", "group");
      text.setAttribute("aria-label", "Long text");
    }
  };
  const near = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
    near.unobserve(target);
    target.classList.remove("far");
    reachable(target);
  }), { rootMargin: "50%" }); // to measure texts is slow, so those far away wait
  document.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    if (!event.target.classList.contains("item")) return reachable(event.target);
    fill(event.target);
    near.observe(event.target);
  }, true);
  if (field("trait")) field("trait").append(...index.traits.map((name, place) => option(String(place), name.length > 80 ? `${name.slice(0, 80)}…` : name)));
  let waiting = 0;
  field("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
  form.addEventListener("change", (event) => { if (event.target.id === "trait") offerStates(); if (event.target.id !== "text") apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { offerStates(); apply(); }));
  field("unfold").addEventListener("click", () => {
    const shown = items.filter((item) => !item.hidden);
    const some = () => { shown.splice(0, 20).forEach((item) => { item.classList.add("far"); open(item); }); if (shown.length) setTimeout(some); };
    some();
  });
  field("fold").addEventListener("click", () => items.forEach((item) => { item.open = false; }));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-pair]");
    if (!link) return;
    form.reset();
    field("pair").value = link.dataset.pair;
    if (field("reason")) field("reason").value = link.dataset.reason ?? "";
    boxes.forEach((box) => { box.checked = box.value === link.dataset.outcome; });
    setTimeout(apply);
  });
  window.addEventListener("hashchange", target);
  form.hidden = items.length === 0;
  apply();
  target();
  window.addEventListener("load", () => setTimeout(target)); // the browser's own jump comes last and takes the focus
})();

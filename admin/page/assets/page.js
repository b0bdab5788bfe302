// What the page can do better with a script: fill in the token of the link, and
// show turns as they flow. It works without.
"use strict";

(() => {
  const login = document.getElementById("login");
  if (login) {
    const enter = () => {
      if (location.hash.length < 2) return;
      document.getElementById("token").value = location.hash.slice(1);
      history.replaceState(null, "", location.pathname); // the token stays in no history
      login.requestSubmit();
    };
    addEventListener("hashchange", enter); // the link was opened where this page is already
    enter();
    return;
  }

  const turns = document.getElementById("turns");
  if (!turns || !window.EventSource) return;
  const most = 100;
  const state = document.getElementById("live");
  const running = document.getElementById("running");
  const waiting = document.getElementById("waiting");
  const pause = document.getElementById("pause");
  let source = null;

  const start = () => {
    source = new EventSource("/live");
    source.addEventListener("open", () => { state.textContent = "Turns come in live."; });
    source.addEventListener("error", () => {
      const refused = source.readyState === EventSource.CLOSED; // the bot was started again, say
      if (refused) stop();
      state.textContent = refused ? "The connection is lost. Load the page again." : "The connection is lost; it is tried again.";
    });
    source.addEventListener("over", () => {
      stop();
      state.textContent = "This session is over.";
    });
    source.addEventListener("waiting", (event) => { waiting.textContent = event.data; });
    source.addEventListener("state", (event) => {
      const now = document.getElementById("state");
      if (!now.contains(document.activeElement)) now.innerHTML = event.data; // the server rendered it
    });
    source.addEventListener("running", (event) => { running.innerHTML = event.data; }); // rows that the server rendered
    const some = () => {
      const none = document.getElementById("none");
      if (none && turns.children.length) none.remove();
    };
    source.addEventListener("turns", (event) => {
      turns.innerHTML = event.data; // all rows
      some();
    });
    source.addEventListener("turn", (event) => {
      const one = document.createElement("tbody");
      one.innerHTML = event.data; // a row that the server rendered
      if ([...turns.children].some((row) => row.innerHTML === one.firstElementChild.innerHTML)) return; // the list had it
      turns.prepend(one.firstElementChild);
      some();
      turns.firstElementChild.classList.add("new");
      while (turns.children.length > most) turns.lastElementChild.remove();
    });
    pause.textContent = "Pause";
  };
  const stop = () => {
    source.close();
    source = null;
    state.textContent = "Paused.";
    pause.textContent = "Go on";
  };
  pause.hidden = false;
  pause.addEventListener("click", () => (source ? stop() : start()));
  start();
})();

// What the page shows right now. One object; whoever changes it says what, and all parts are told.

export class State {
  constructor(initial) {
    this.values = initial;
    this.listeners = [];
  }

  get(name) {
    return this.values[name];
  }

  /** Change some values; listeners get the names of those that are really different. */
  set(changes) {
    const names = Object.keys(changes).filter((name) => this.values[name] !== changes[name]);
    if (!names.length) return;
    Object.assign(this.values, changes);
    for (const listener of this.listeners) listener(new Set(names));
  }

  on(listener) {
    this.listeners.push(listener);
  }
}

import { splitStateMapKey, stateMapKey } from '../../../protocol/index.ts';

/** `[type, state key]` as clients write them; `*` stands for any, `$ME` for the user, `$LAZY` see below. */
export type RequiredEntry = readonly [type: string, stateKey: string];

const anything = '*';
const memberType = 'm.room.member';

/**
 * Which entries of a room's state one rule asks for. With `$LAZY`, members come with the timeline that needs them, and
 * a type `*` does not mean members.
 */
class StateRule {
  readonly isLazy: boolean;
  /** Names the rule, the same for the same entries in whatever order. */
  readonly text: string;
  /** Type to state keys. */
  readonly #types = new Map<string, Set<string>>();

  constructor(entries: readonly RequiredEntry[], userId: string) {
    const wanted = [...new Set(entries.map(([type, key]) => JSON.stringify([type, key])))].sort();
    this.text = `[${wanted.join(',')}]`;
    this.isLazy = entries.some(([type, key]) => type === memberType && key === '$LAZY');
    for (const [type, key] of entries) {
      if (key === '$LAZY') continue;
      const keys = this.#types.get(type) ?? new Set();
      this.#types.set(type, keys.add(key === '$ME' ? userId : key));
    }
  }

  matches(type: string, stateKey: string): boolean {
    const matchedBy = (keys: Set<string> | undefined) =>
      keys !== undefined && (keys.has(stateKey) || keys.has(anything));
    if (matchedBy(this.#types.get(type))) return true;
    return !(this.isLazy && type === memberType) && matchedBy(this.#types.get(anything));
  }

  /** The entries as keys of a state; `undefined` when a wildcard leaves them open. */
  keys(): string[] | undefined {
    const keys: string[] = [];
    for (const [type, stateKeys] of this.#types) {
      if (type === anything || stateKeys.has(anything)) return undefined;
      for (const stateKey of stateKeys) keys.push(stateMapKey(type, stateKey));
    }
    return keys;
  }
}

/**
 * Which entries of a room's state a client wants to have: whatever any of its rules asks for.
 * Source: MSC4186, "Combining required_state", with the entries in the form of its unstable endpoint.
 */
export class RequiredState {
  /** Names what is wanted, compactly enough to be kept with a connection. */
  readonly text: string;
  /** Send the members whom the timeline needs. */
  readonly lazyMembers: boolean;
  readonly #rules: readonly StateRule[];

  private constructor(rules: ReadonlyMap<string, StateRule>) {
    this.#rules = [...rules.values()].sort((one, other) => (one.text < other.text ? -1 : 1));
    this.text = `[${this.#rules.map(({ text }) => text).join(',')}]`;
    this.lazyMembers = this.#rules.some(({ isLazy }) => isLazy);
  }

  static of(rules: readonly (readonly RequiredEntry[])[], userId: string): RequiredState {
    const compiled = rules.map((entries) => new StateRule(entries, userId));
    return new RequiredState(new Map(compiled.map((rule) => [rule.text, rule])));
  }

  /** The inverse of `text`. */
  static parse(text: string, userId: string): RequiredState {
    return RequiredState.of(JSON.parse(text) as RequiredEntry[][], userId);
  }

  /** Whatever either asks for. */
  and(other: RequiredState): RequiredState {
    if (this.text === other.text) return this;
    const rules = [...this.#rules, ...other.#rules];
    return new RequiredState(new Map(rules.map((rule) => [rule.text, rule])));
  }

  /** @param key as `stateMapKey` */
  matches(key: string): boolean {
    const [type, stateKey] = splitStateMapKey(key);
    return this.#rules.some((rule) => rule.matches(type, stateKey));
  }

  /** The keys of `state` that are wanted. */
  select(state: ReadonlyMap<string, unknown>): string[] {
    const named = this.#rules.map((rule) => rule.keys());
    if (named.every((keys) => keys !== undefined)) {
      return [...new Set(named.flat())].filter((key) => state.has(key));
    }
    return [...state.keys()].filter((key) => this.matches(key));
  }
}

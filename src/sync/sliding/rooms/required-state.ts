import { splitStateMapKey, stateMapKey } from '../../../protocol/index.ts';

/** `[type, state key]` as clients write them; `*` matches anything, `$ME` the user; for `$LAZY` see `StateRule`. */
export type RequiredEntry = readonly [type: string, stateKey: string];

const anything = '*';
const memberType = 'm.room.member';

/**
 * The entries of a room's state that one rule requires. With `$LAZY`, members come with the timeline that
 * needs them, and the type `*` does not match members.
 */
class StateRule {
  readonly isLazy: boolean;
  /** Identifies the rule: rules with the same entries have the same text, in any order of the entries. */
  readonly text: string;
  /** Required state keys by event type. */
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

  /** Whether all members are required. */
  get hasAllMembers(): boolean {
    if (this.#types.get(memberType)?.has(anything)) return true;
    return !this.isLazy && this.#types.get(anything)?.has(anything) === true;
  }

  /** Returns the required entries as keys of a state; `undefined` when the rule has a wildcard. */
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
 * The entries of a room's state that a client requires: an entry that at least one of the rules requires. Source:
 * MSC4186, "Combining required_state", with the entries in the form of its unstable endpoint.
 */
export class RequiredState {
  /** Identifies the required state. `RoomConfigs` bounds its length, because connections store it. */
  readonly text: string;
  /** Whether to send the members that the timeline needs. */
  readonly lazyMembers: boolean;
  /** Whether all members are required, so that rooms with partial state are left out. */
  readonly hasAllMembers: boolean;
  readonly #rules: readonly StateRule[];

  private constructor(rules: ReadonlyMap<string, StateRule>) {
    this.#rules = [...rules.values()].sort((a, b) => (a.text < b.text ? -1 : 1));
    this.text = `[${this.#rules.map(({ text }) => text).join(',')}]`;
    this.lazyMembers = this.#rules.some(({ isLazy }) => isLazy);
    this.hasAllMembers = this.#rules.some((rule) => rule.hasAllMembers);
  }

  /** Compiles the entries of several rules. */
  static of(rules: readonly (readonly RequiredEntry[])[], userId: string): RequiredState {
    const compiled = rules.map((entries) => new StateRule(entries, userId));
    return new RequiredState(new Map(compiled.map((rule) => [rule.text, rule])));
  }

  /** Returns the required state that has this `text`. */
  static parse(text: string, userId: string): RequiredState {
    return RequiredState.of(JSON.parse(text) as RequiredEntry[][], userId);
  }

  /** Returns the state that this object or `other` requires. */
  union(other: RequiredState): RequiredState {
    if (this.text === other.text) return this;
    const rules = [...this.#rules, ...other.#rules];
    return new RequiredState(new Map(rules.map((rule) => [rule.text, rule])));
  }

  /** @param key as `stateMapKey` */
  matches(key: string): boolean {
    const [type, stateKey] = splitStateMapKey(key);
    return this.#rules.some((rule) => rule.matches(type, stateKey));
  }

  /** Returns the keys of `state` that are required. */
  select(state: ReadonlyMap<string, unknown>): string[] {
    const keysByRule = this.#rules.map((rule) => rule.keys());
    if (keysByRule.every((keys) => keys !== undefined)) {
      return [...new Set(keysByRule.flat())].filter((key) => state.has(key));
    }
    return [...state.keys()].filter((key) => this.matches(key));
  }
}

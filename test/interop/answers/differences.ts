/** A place where two normalized answers differ. */
export interface Difference {
  /**
   * The path from the root: names of fields, separated by dots. An item of a list is named by what identifies it (an
   * event by type and state key, a device by its id), or else by its index. `(order)` at the end means that only the
   * order of the list differs.
   */
  readonly at: string;
  /** JSON, or `absent`. */
  readonly hearth: string;
  readonly reference: string;
}

/** Lists the places where the answers differ. A field that one answer lacks is one place, with all that is in it. */
export function differencesOf(hearth: unknown, reference: unknown, at = ''): Difference[] {
  if (Object.is(hearth, reference)) return [];
  const [hearthItems, referenceItems] = [keyed(hearth), keyed(reference)];
  if (!hearthItems || !referenceItems || Array.isArray(hearth) !== Array.isArray(reference))
    return [{ at, hearth: shown(hearth), reference: shown(reference) }];
  const below = (key: string) => (at ? `${at}.${key}` : key);
  const differences = [...new Set([...hearthItems.keys(), ...referenceItems.keys()])].flatMap((key) =>
    differencesOf(hearthItems.get(key), referenceItems.get(key), below(key)),
  );
  const order = (items: ReadonlyMap<string, unknown>) => [...items.keys()].join(' ');
  if (differences.length === 0 && Array.isArray(hearth) && order(hearthItems) !== order(referenceItems))
    return [{ at: below('(order)'), hearth: order(hearthItems), reference: order(referenceItems) }];
  return differences;
}

/**
 * Returns the fields of an object by name; the items of a list by a property that identifies them, or by
 * index.
 */
function keyed(value: unknown): Map<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const byIdentity = new Map(value.map((item: unknown) => [identityOf(item) ?? '', item]));
  if (byIdentity.size === value.length && !byIdentity.has('')) return byIdentity;
  return new Map(value.map((item: unknown, index) => [`[${index}]`, item]));
}

function identityOf(item: unknown): string | undefined {
  if (typeof item === 'string') return `[${item}]`;
  if (typeof item !== 'object' || item === null) return undefined;
  const { type, state_key, rule_id, set_tweak, device_id, user_id, room_id, sender } = item as Record<
    string,
    unknown
  >;
  if (typeof type === 'string') {
    const key = state_key ?? (type === 'm.presence' ? sender : undefined);
    return `[${type}${typeof key === 'string' ? `|${key}` : ''}]`;
  }
  const id = rule_id ?? set_tweak ?? device_id ?? user_id ?? room_id;
  return typeof id === 'string' ? `[${id}]` : undefined;
}

const shown = (value: unknown) => (value === undefined ? 'absent' : JSON.stringify(value));

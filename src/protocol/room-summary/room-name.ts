/** Somebody after whom a room can be called. */
export interface NamedMember {
  readonly userId: string;
  readonly displayName: string | undefined;
}

export interface RoomNameFacts {
  readonly name: string | undefined;
  readonly canonicalAlias: string | undefined;
  /** See `selectHeroes`. */
  readonly heroes: readonly NamedMember[];
  /** Including the user for whom the room is named. */
  readonly joinedCount: number;
  readonly invitedCount: number;
}

/**
 * What to call a room in notifications and e-mails: its name, its alias, or a name made of its members, in English.
 * Source: client-server API, "Calculating the display name for a room".
 */
export function roomNameOf({
  name,
  canonicalAlias,
  heroes,
  joinedCount,
  invitedCount,
}: RoomNameFacts): string {
  const given = name || canonicalAlias;
  if (given) return given;
  const names = displayNamesOf(heroes);
  const others = joinedCount + invitedCount - 1;
  if (others <= 0)
    return names.length === 0 ? 'Empty Room' : `Empty Room (was ${enumerate(names, names.length)})`;
  return names.length === 0 ? numberOfPeople(others) : enumerate(names, Math.max(others, names.length));
}

/**
 * The names of members, with the user id where two have the same and the user id alone where one has none.
 * Source: client-server API, "Calculating the display name for a user".
 */
export function displayNamesOf(members: readonly NamedMember[]): string[] {
  const counts = new Map<string | undefined, number>();
  for (const { displayName } of members) counts.set(displayName, (counts.get(displayName) ?? 0) + 1);
  return members.map(({ userId, displayName }) => {
    if (!displayName) return userId;
    return counts.get(displayName) === 1 ? displayName : `${displayName} (${userId})`;
  });
}

/** "Alice", "Alice and Bob", "Alice, Bob, and Charlie", "Alice, Bob, and 3 others". */
function enumerate(names: readonly string[], total: number): string {
  const rest = total - names.length;
  const parts = rest > 0 ? [...names, rest === 1 ? '1 other' : `${rest} others`] : [...names];
  const last = parts.pop() ?? '';
  if (parts.length === 0) return last;
  return parts.length === 1 ? `${parts[0]} and ${last}` : `${parts.join(', ')}, and ${last}`;
}

const numberOfPeople = (count: number): string => (count === 1 ? '1 other person' : `${count} other people`);

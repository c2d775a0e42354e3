import { MiB } from '../kernel/caches/index.ts';

/**
 * Maximum bytes of stored keys in one response: about 6,000 devices of 1.4 kB. The limit applies to local users and to
 * remote users separately.
 */
const maxBytes = 8 * MiB;

/**
 * Maximum number of users, and bytes of their keys, that are read before control returns to the event loop. A user with
 * more bytes is a batch alone.
 */
const batchBounds = { users: 500, bytes: MiB };

/** Users divided into those whose keys one response contains and those whose keys it leaves out. */
export interface ChosenUsers {
  /** Groups of users. The keys of a group are read together. */
  readonly batches: readonly (readonly string[])[];
  /** Users whose keys would make the response too large. */
  readonly leftOut: ReadonlySet<string>;
}

/**
 * Chooses the users whose keys fit into one response. Chooses the users with the fewest bytes first, so that a user
 * with thousands of devices does not displace others.
 * @param bytesByUser bytes of the stored keys; users without stored keys are absent
 */
export function chooseUsers(
  userIds: readonly string[],
  bytesByUser: ReadonlyMap<string, number>,
): ChosenUsers {
  const bytesOf = (userId: string) => bytesByUser.get(userId) ?? 0;
  const batches: string[][] = [];
  const leftOut = new Set<string>();
  let total = 0;
  let batchBytes = 0;
  for (const userId of userIds.toSorted((first, second) => bytesOf(first) - bytesOf(second))) {
    const bytes = bytesOf(userId);
    if (total + bytes > maxBytes) {
      leftOut.add(userId);
      continue;
    }
    total += bytes;
    const batch = batches.at(-1);
    if (!batch || batch.length >= batchBounds.users || batchBytes + bytes > batchBounds.bytes) {
      batches.push([userId]);
      batchBytes = bytes;
    } else {
      batch.push(userId);
      batchBytes += bytes;
    }
  }
  return { batches, leftOut };
}

import { isCompliantUserId, serverOfUser, type UserId } from '../../protocol/index.ts';

/**
 * Whether an EDU of `server` may be about that user: one of its own, of whom clients may be told outside of events.
 * Historical ids of printable ASCII, upper case among it, are taken; those that are empty or hold other characters are
 * for events only (decision 0121). Source: appendices, "Historical User IDs".
 */
export function isEduUserOf(server: string, userId: unknown): userId is UserId {
  return isCompliantUserId(userId) && serverOfUser(userId) === server;
}

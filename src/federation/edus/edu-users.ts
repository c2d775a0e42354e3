import { isCompliantUserId, serverOfUser, type UserId } from '../../protocol/index.ts';

/**
 * Whether EDUs of `server` may concern this user: one of its own, with an id that may be sent to clients
 * outside of events. Historical ids of printable ASCII, including upper case, are allowed; ids that are empty
 * or have other characters may occur in events only (decision 0121). Source: appendices, "Historical User
 * IDs".
 */
export function isEduUserOf(server: string, userId: unknown): userId is UserId {
  return isCompliantUserId(userId) && serverOfUser(userId) === server;
}

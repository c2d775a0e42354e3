import { isJsonObject, type JsonObject } from '../protocol/index.ts';

/** The type of the account data that lists the users whom a user ignores. */
export const ignoredUserListType = 'm.ignored_user_list';

/** Maximum number of users whom a user ignores. The lists of all local members of a room are read for each message. */
export const maxIgnoredUsers = 5_000;

/** Returns the first 5,000 users in an `m.ignored_user_list`, except the owner of the list. */
export function ignoredIn(content: JsonObject, userId: string): ReadonlySet<string> {
  const ignored = new Set(usersIn(content).slice(0, maxIgnoredUsers));
  ignored.delete(userId);
  return ignored;
}

/** Returns the users in an `m.ignored_user_list`. */
export const usersIn = ({ ignored_users: users }: JsonObject): string[] =>
  isJsonObject(users) ? Object.keys(users) : [];

import { type Database, type FullText, foldText, TextQuery } from '../../kernel/database/index.ts';
import { localpartOf, serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { DirectoryConfig } from '../config.ts';
import type { DirectoryTables } from '../tables.ts';
import {
  type DirectoryEntry,
  readEnteredRooms,
  readPublicRooms,
  readUsersByNid,
  searchedText,
  userTexts,
} from './store.ts';
import type { DirectoryUsers } from './user-index.ts';

export interface UserDirectoryDeps {
  readonly engine: RoomReader;
  readonly database: Database;
  /**
   * Writers of the entries that are searched. A search waits until each has caught up, since users search for new
   * accounts and names.
   */
  readonly indexes: readonly { caughtUp(): Promise<void> }[];
  readonly localUsers: DirectoryUsers;
  readonly serverName: string;
  /** Whether a search may show a user; supplied by modules. Absent: a search may show all users. */
  readonly mayShow?: MayShowUser | undefined;
}

/** Whether a search may show a user to the user who searches. */
export type MayShowUser = (user: DirectoryEntry, searcher: string) => Promise<boolean>;

export interface UserSearch {
  /** The user who searches. */
  readonly userId: string;
  readonly term: string;
  readonly limit: number;
}

export interface UserSearchResult {
  readonly results: readonly DirectoryEntry[];
  /** Whether more users match. */
  readonly limited: boolean;
}

/** Maximum characters of a search term; the rest is ignored. */
const maxTermLength = 256;

/** Number of candidates that are checked together. */
const candidatesPerBatch = 500;

/** Maximum number of batches of candidates in one search. */
const maxBatches = 10;

/**
 * A search reads no more candidates once it has found this many visible users. It chooses the best matches among them.
 */
const maxVisible = 1_000;

/** Searches for users. Source: client-server API, "User directory". */
export class UserDirectory {
  readonly #deps: UserDirectoryDeps;
  readonly #options: DirectoryConfig['user_directory'];
  readonly #texts: FullText;

  constructor(deps: UserDirectoryDeps, options: DirectoryConfig['user_directory']) {
    this.#deps = deps;
    this.#options = options;
    this.#texts = deps.database.fullText(userTexts);
  }

  /** Returns the users that the searcher may find, best match first. */
  async search({ userId, term, limit }: UserSearch): Promise<UserSearchResult> {
    const searched = term.slice(0, maxTermLength);
    const query = new TextQuery(searched);
    if (!this.#options.enabled || query.isEmpty) return { results: [], limited: false };
    await Promise.all(this.#deps.indexes.map((index) => index.caughtUp()));
    const found = await this.#visible(userId, query);
    const wanted = foldText(searched.trim());
    const ranked = found
      .map((user) => ({ user, rank: this.#rank(user, wanted) }))
      .sort((a, b) => a.rank - b.rank || (a.user.userId < b.user.userId ? -1 : 1));
    const results: DirectoryEntry[] = [];
    const { mayShow } = this.#deps;
    for (const { user } of ranked) {
      if (!(await this.#mayBeShown(user.userId))) continue;
      if (mayShow && !(await mayShow(user, userId))) continue;
      if (results.length === limit) return { results, limited: true };
      results.push(user);
    }
    return { results, limited: false };
  }

  async #visible(searcher: string, query: TextQuery): Promise<DirectoryEntry[]> {
    const reader = this.#deps.database.reader<DirectoryTables>();
    const visibleUsers: DirectoryEntry[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    for (let batch = 0; batch < maxBatches && visibleUsers.length < maxVisible; batch++) {
      const nids = await this.#texts.candidates({ query, before, limit: candidatesPerBatch });
      const users = await readUsersByNid(reader, nids);
      const matching = users.filter(
        (user) =>
          query.matches(searchedText(user)) &&
          (!this.#options.exclude_remote_users || this.#isLocal(user.userId)),
      );
      visibleUsers.push(...(await this.#visibleTo(searcher, matching)));
      if (nids.length < candidatesPerBatch) break;
      before = nids.at(-1) ?? 0;
    }
    return visibleUsers;
  }

  /**
   * Returns the given users whom the searcher may find: the searcher, users who share a room with the searcher, and
   * users in public rooms. With `search_all_users`, also all local users, and remote users in rooms of this server.
   */
  async #visibleTo(searcher: string, users: readonly DirectoryEntry[]): Promise<readonly DirectoryEntry[]> {
    if (users.length === 0) return users;
    const { engine, database } = this.#deps;
    const { search_all_users: findsAll } = this.#options;
    const usersToCheck = users.filter(
      ({ userId }) => userId !== searcher && !(findsAll && this.#isLocal(userId)),
    );
    const rooms = await engine.userRooms.joinedNids(usersToCheck.map(({ userId }) => userId));
    const searcherRoomNids = new Set<number>();
    for (const room of (await engine.userRooms.of(searcher)).values()) {
      if (room.membership === 'join') searcherRoomNids.add(room.roomNid);
    }
    const otherRoomNids = [
      ...new Set([...rooms.values()].flat().filter((nid) => !searcherRoomNids.has(nid))),
    ];
    const reader = database.reader<DirectoryTables>();
    const visibleRoomNids = findsAll
      ? await readEnteredRooms(reader, otherRoomNids)
      : await readPublicRooms(reader, otherRoomNids);
    const isHidden = ({ userId }: DirectoryEntry) =>
      !rooms.get(userId)?.some((nid) => searcherRoomNids.has(nid) || visibleRoomNids.has(nid));
    const hidden = new Set(usersToCheck.filter(isHidden));
    return users.filter((user) => !hidden.has(user));
  }

  /**
   * Returns the rank of a match, from 0 to 11. Lower is better: local users first if configured, then the match of the
   * name, then users with a profile.
   * @param wanted the folded search term
   */
  #rank(user: DirectoryEntry, wanted: string): number {
    const { userId, displayName, avatarUrl } = user;
    const foldedName = foldText(displayName?.slice(0, maxTermLength + 1) ?? '');
    const names = [foldedName, localpartOf(userId), userId].filter((name) => name !== '');
    const difference = names.includes(wanted) ? 0 : names.some((name) => name.startsWith(wanted)) ? 1 : 2;
    const withoutProfile = displayName === undefined && avatarUrl === undefined ? 1 : 0;
    const behindLocalUsers = this.#options.prefer_local_users && !this.#isLocal(userId) ? 6 : 0;
    return behindLocalUsers + difference * 2 + withoutProfile;
  }

  /**
   * Whether the account of a user allows searches to show the user. Deactivated users, guests and support users are
   * never shown, locked users only with `show_locked_users`. Remote users are always shown.
   */
  async #mayBeShown(userId: string): Promise<boolean> {
    if (!this.#isLocal(userId)) return true;
    const account = await this.#deps.localUsers.account(userId);
    if (!account || account.isDeactivated || account.isGuest || account.userType === 'support') return false;
    return !account.isLocked || this.#options.show_locked_users;
  }

  #isLocal(userId: string): boolean {
    return serverOfUser(userId) === this.#deps.serverName;
  }
}

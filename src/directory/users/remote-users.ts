import type { Clock } from '../../kernel/clock.ts';
import type { Database, FullText } from '../../kernel/database/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import { type RoomReader, type StoredEvent, visibleContent } from '../../room-engine/index.ts';
import { RedactedState } from '../redacted-state.ts';
import type { DirectoryTables } from '../tables.ts';
import { type DirectoryUser, readUsersById, userTexts, writeUser } from './store.ts';
import { avatarUrlOf, nameOf } from './user-index.ts';

export interface RemoteUsersDeps {
  readonly engine: RoomReader;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
}

/** Maximum number of users that one transaction writes. */
const usersPerTransaction = 100;

/** Number of membership events that are in memory together. */
const membersAtOnce = 200;

/** Updates the entries of remote users in the user directory, from their membership events. */
export class RemoteUsers {
  readonly #deps: RemoteUsersDeps;
  readonly #texts: FullText;
  readonly #follower: Follower;
  /**
   * Position of the stream when `start` was called. Later memberships are collected in `#changed`; earlier memberships
   * must be read from the database.
   */
  #collectedAfter = 0;
  readonly #redacted: RedactedState;
  /** Writes one batch of changed users at a time; all tasks have one key. */
  readonly #writing = new KeyedMutex();
  /** The users whose entries are not written again yet, by user id. */
  #changed = new Map<string, DirectoryUser>();

  constructor(deps: RemoteUsersDeps) {
    this.#deps = deps;
    this.#texts = deps.database.fullText(userTexts);
    this.#redacted = new RedactedState(deps.engine);
    this.#follower = new Follower(deps, {
      name: 'directory/remote-users',
      startAt: 0,
      follow: (after) => this.#follow(after),
    });
  }

  /** Starts to collect the memberships of remote users, and to write their entries. */
  start(): Promise<void> {
    const { engine, streams } = this.#deps;
    this.#collectedAfter = streams.current;
    this.#redacted.start();
    engine.stream.subscribe(({ stateChanges }) => {
      for (const { type, event } of stateChanges) if (type === 'm.room.member') this.#collect(event);
    });
    return this.#follower.start();
  }

  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when the entries include all memberships before the call, or after a timeout. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUpSoon();
  }

  /** Writes the entries of all remote users who are joined to a room, whether the entries have changed or not. */
  async rewriteRoom(roomId: string): Promise<void> {
    await this.#collectMembers(roomId);
    await this.#writeChanged();
  }

  #collect(stored: StoredEvent | undefined): void {
    const userId = stored?.event.stateKey;
    if (stored === undefined || userId === undefined) return;
    const content = visibleContent(stored);
    if (content['membership'] !== 'join') return;
    if (serverOfUser(userId) === this.#deps.serverName) return;
    this.#changed.set(userId, {
      userId,
      displayName: nameOf(content['displayname']),
      avatarUrl: avatarUrlOf(content['avatar_url']),
    });
  }

  async #follow(after: number): Promise<void> {
    if (after < this.#collectedAfter) await this.#collectEarlier(after);
    for (const stored of await this.#redacted.take()) {
      if (stored.event.type === 'm.room.member') this.#collect(stored);
    }
    await this.#writeChanged();
  }

  /** Writes the collected users, one batch at a time, so that no write stores older names than the one before. */
  #writeChanged(): Promise<void> {
    return this.#writing.run('', () => this.#takeChanged());
  }

  async #takeChanged(): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Map();
    try {
      const users = [...changed.values()];
      for (let start = 0; start < users.length; start += usersPerTransaction) {
        await this.#write(users.slice(start, start + usersPerTransaction));
      }
    } catch (error) {
      for (const [userId, user] of changed) {
        if (!this.#changed.has(userId)) this.#changed.set(userId, user);
      }
      throw error;
    }
  }

  /** Collects the members of the rooms that changed before `start` was called. */
  async #collectEarlier(after: number): Promise<void> {
    const { engine } = this.#deps;
    for (const roomId of await engine.events.roomsChangedBetween(after, this.#collectedAfter)) {
      await this.#collectMembers(roomId);
    }
  }

  async #collectMembers(roomId: string): Promise<void> {
    const { engine } = this.#deps;
    const head = await engine.heads.get(roomId);
    const joined = [...(head?.state.values() ?? [])].filter(({ membership }) => membership === 'join');
    const nids = joined.map(({ nid }) => nid);
    for (let start = 0; start < nids.length; start += membersAtOnce) {
      const events = await engine.events.getMany(nids.slice(start, start + membersAtOnce));
      for (const stored of events.values()) this.#collect(stored);
    }
  }

  async #write(users: readonly DirectoryUser[]): Promise<void> {
    const { database } = this.#deps;
    const reader = database.reader<DirectoryTables>();
    const ids = users.map(({ userId }) => userId);
    const known = new Map((await readUsersById(reader, ids)).map((entry) => [entry.userId, entry]));
    const changedUsers = users.filter((user) => {
      const entry = known.get(user.userId);
      return entry?.displayName !== user.displayName || entry?.avatarUrl !== user.avatarUrl || !entry;
    });
    if (changedUsers.length === 0) return;
    await database.transaction<DirectoryTables, void>(async (writer) => {
      for (const user of changedUsers) await writeUser(writer, this.#texts, user);
    });
  }
}

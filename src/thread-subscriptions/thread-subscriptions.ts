import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Database, Reader } from '../kernel/database/index.ts';
import { LastChanges } from '../kernel/recent-changes.ts';
import {
  decodePosition,
  encodePosition,
  jsonFacts,
  Stream,
  type StreamWriter,
} from '../kernel/streams/index.ts';
import { type JsonObject, MatrixError } from '../protocol/index.ts';
import { FollowedThreads } from './followed-threads.ts';
import { readChangedThreads, readFollowedThreads, readThread, replaceThread } from './store.ts';
import type { ThreadSubscriptionTables as Tables } from './tables.ts';
import type { ThreadEntry, ThreadKey, ThreadState } from './thread.ts';

/** A user has subscribed to a thread or unsubscribed from it. */
export interface ThreadChange {
  readonly userId: string;
}

/** Some changes, as clients receive them. */
export interface ThreadChanges {
  /** `subscribed` and `unsubscribed`, by room and thread; empty sections are absent. */
  readonly sections: JsonObject;
  /** The token for reading older changes; `undefined` when there are none. */
  readonly older: string | undefined;
}

/** Maximum number of users whose position of the last change is cached. */
const maxCachedUsers = 10_000;

export interface ThreadSubscriptionsDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly caches: CacheRegistry;
}

/** The subscriptions of users to threads. Source: MSC4306, MSC4308. */
export class ThreadSubscriptions {
  readonly threadStream = new Stream<ThreadChange>('thread_subscriptions', jsonFacts());
  /** The followed threads, for push rules. */
  readonly followed: FollowedThreads;
  readonly #database: Database;
  readonly #streams: StreamWriter;
  /** User id to the position of the last change. */
  readonly #latest: LastChanges;

  constructor({ database, streams, caches }: ThreadSubscriptionsDeps) {
    this.#database = database;
    this.#streams = streams;
    this.#latest = new LastChanges(streams.current, caches, {
      name: 'thread_subscription_changes',
      maxKeys: maxCachedUsers,
    });
    this.followed = new FollowedThreads(caches, (userId, limit) =>
      readFollowedThreads(this.#reader, userId, limit),
    );
    this.threadStream.subscribe(({ userId }, position) => {
      this.#latest.set(userId, position);
      this.followed.forget(userId);
    });
  }

  /** Returns whether a user follows a thread, and by whose decision; `none` without a subscription. */
  async stateOf(key: ThreadKey): Promise<ThreadState> {
    return (await readThread(this.#reader, key))?.state ?? 'none';
  }

  /** Subscribes a user at their request. */
  subscribe(key: ThreadKey): Promise<void> {
    return this.#change(key, () => 'manual');
  }

  /**
   * Subscribes a user whose client has found an event that causes a subscription.
   * @param cause stream position of the event that is the cause
   * @throws MatrixError 409 when the user has unsubscribed since that event
   */
  subscribeAutomatically(key: ThreadKey, cause: number): Promise<void> {
    return this.#change(key, (old) => {
      if (old?.state === 'none' && old.position >= cause) throw conflictingUnsubscription();
      return old === undefined || old.state === 'none' ? 'automatic' : undefined;
    });
  }

  /** Unsubscribes a user. Nothing is stored for a thread that they did not follow. */
  unsubscribe(key: ThreadKey): Promise<void> {
    return this.#change(key, (old) => (old === undefined ? undefined : 'none'));
  }

  /**
   * Returns the newest `limit` of the changes in `(after, upTo]`; `undefined` when there are none. Costs no
   * query for users without recent changes.
   */
  async changes(
    userId: string,
    { after = 0, upTo, limit }: { after: number | undefined; upTo: number; limit: number },
  ): Promise<ThreadChanges | undefined> {
    if (after >= this.#latest.of(userId)) return undefined;
    const entries = await readChangedThreads(this.#reader, userId, { after, upTo, limit: limit + 1 });
    if (entries.length === 0) return undefined;
    const returned = entries.slice(0, limit);
    const oldest = returned.at(-1)?.position ?? 0;
    return {
      sections: sectionsOf(returned),
      older: entries.length > limit ? encodePosition(oldest - 1) : undefined,
    };
  }

  /**
   * Returns one page of changes, backwards. Source: MSC4308, "Companion endpoint".
   * @param from a token of an earlier page or of the sync; `undefined`: the current position
   * @param after the position where the pages end
   * @throws MatrixError M_INVALID_PARAM for an invalid token
   */
  async page(
    userId: string,
    { from, after, limit }: { from: string | undefined; after: number; limit: number },
  ): Promise<JsonObject> {
    const upTo = from === undefined ? this.#streams.current : decodePosition(from);
    const changes = await this.changes(userId, { after, upTo, limit });
    return { ...changes?.sections, ...(changes?.older !== undefined && { end: changes.older }) };
  }

  get #reader(): Reader<Tables> {
    return this.#database.reader<Tables>();
  }

  /** @param next returns the new state; `undefined` or the same state changes nothing */
  async #change(
    key: ThreadKey,
    next: (old: ThreadEntry | undefined) => ThreadState | undefined,
  ): Promise<void> {
    await this.#streams.write<Tables, void>(async (writer, publish) => {
      let position: number | undefined;
      for (;;) {
        const old = await readThread(writer, key);
        const state = next(old);
        if (state === undefined || state === old?.state) return;
        position ??= publish(this.threadStream, { userId: key.userId });
        if (await replaceThread(writer, key, old, { state, position })) return;
      }
    });
  }
}

function sectionsOf(entries: readonly ThreadEntry[]): JsonObject {
  const subscribed = new Map<string, [string, JsonObject][]>();
  const unsubscribed = new Map<string, [string, JsonObject][]>();
  for (const { roomId, rootId, state, position } of entries) {
    const section = state === 'none' ? unsubscribed : subscribed;
    const inRoom = section.get(roomId) ?? [];
    section.set(roomId, inRoom);
    const thread =
      state === 'none'
        ? { bump_stamp: position }
        : { automatic: state === 'automatic', bump_stamp: position };
    inRoom.push([rootId, thread]);
  }
  const objectOf = (section: typeof subscribed) =>
    Object.fromEntries([...section].map(([roomId, threads]) => [roomId, Object.fromEntries(threads)]));
  return {
    ...(subscribed.size > 0 && { subscribed: objectOf(subscribed) }),
    ...(unsubscribed.size > 0 && { unsubscribed: objectOf(unsubscribed) }),
  };
}

const conflictingUnsubscription = () =>
  new MatrixError(
    409,
    'IO.ELEMENT.MSC4306.M_CONFLICTING_UNSUBSCRIPTION',
    'You have unsubscribed from this thread after that event',
  );

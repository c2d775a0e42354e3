import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { LoadTogether } from '../../kernel/load-together.ts';
import { allReady, whenReady } from '../../kernel/when-ready.ts';
import { type CompiledRuleset, type PushMember, relationOf } from '../../protocol/index.ts';
import type { ReadUpTo, Receipts } from '../../receipts/index.ts';
import type { IgnoredUserLists, RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { DatedRules, PushRules } from '../rules/push-rules.ts';

/** The threads that users follow; declared here, supplied at composition. */
export interface FollowedThreads {
  /**
   * Returns the ids of the root events of the threads in a room that the user follows; without a promise when they are
   * in memory.
   */
  in(userId: string, roomId: string): ReadonlySet<string> | Promise<ReadonlySet<string>>;
}

/** The ignored users of each user, and when the list changed last; supplied at composition. */
export interface DatedIgnoredUsers extends IgnoredUserLists {
  /**
   * Returns the stream position of the last change, 0 if the list was never changed; without a promise when
   * it is in memory.
   */
  changedAt(userId: string): number | Promise<number>;
}

/** A user in a room, with the data that decide which events notify them. */
export interface NotifiedMember {
  readonly head: RoomHead;
  readonly member: PushMember;
  readonly rules: CompiledRuleset;
  /** How far the user's receipts reach. */
  readonly read: ReadUpTo;
  /** Users whose events never notify the user. */
  readonly ignored: ReadonlySet<string>;
  /** The position at which the user's push rules or ignored users changed last; 0 if never. */
  readonly settingsChangedAt: number;
  /** Messages of the room from before this time have expired; in milliseconds since the epoch. */
  readonly expiredBefore: number;
}

export interface NotifiedMembersDeps {
  readonly caches: CacheRegistry;
  readonly engine: RoomReader;
  readonly receipts: Receipts;
  readonly rules: PushRules;
  readonly ignored: DatedIgnoredUsers;
  readonly threads: FollowedThreads;
}

type Ids = ReadonlySet<string>;

/** Collects the data that decide which events notify a user in a room. */
export class NotifiedMembers {
  readonly #deps: NotifiedMembersDeps;
  readonly #stateEvents: LoadTogether<number, StoredEvent>;
  /** Display names by the database number (nid) of the membership event; empty for members without a name. */
  readonly #displayNames: Cache<number, string>;

  /** @param stateEvents reads membership events by nid */
  constructor(deps: NotifiedMembersDeps, stateEvents: LoadTogether<number, StoredEvent>) {
    this.#deps = deps;
    this.#stateEvents = stateEvents;
    this.#displayNames = deps.caches.create('display_names_of_members', {
      maxBytes: 3 * MiB,
      sizeOf: (name) => 2 * name.length,
    });
  }

  /**
   * Returns the data of a user in a room; without a promise when the data are in memory, as for users and rooms that are
   * in use.
   */
  of(head: RoomHead, userId: string): NotifiedMember | Promise<NotifiedMember> {
    const { receipts, rules, ignored, threads, engine } = this.#deps;
    const { roomId } = head;
    const inputs = allReady<
      [
        rules: DatedRules,
        read: ReadUpTo,
        ignoredUsers: Ids,
        ignoredChangedAt: number,
        displayName: string | undefined,
        followedThreads: Ids,
        expiredBefore: number,
      ]
    >([
      rules.compiled(userId),
      receipts.readUpTo(userId, roomId),
      ignored.of(userId),
      ignored.changedAt(userId),
      this.#displayName(head, userId),
      threads.in(userId, roomId),
      engine.retention.expiredBefore(head),
    ]);
    return whenReady(
      inputs,
      ([
        { compiled, position },
        read,
        ignoredUsers,
        ignoredChangedAt,
        displayName,
        followedThreads,
        expiredBefore,
      ]) => {
        const member = { userId, displayName, followedThreads };
        const settingsChangedAt = Math.max(position, ignoredChangedAt);
        return {
          head,
          member,
          rules: compiled,
          read,
          ignored: ignoredUsers,
          settingsChangedAt,
          expiredBefore,
        };
      },
    );
  }

  /**
   * Returns the position at which the user's push rules or ignored users changed last; 0 if never. Returns at once when
   * it is in memory.
   */
  settingsChangedAt(userId: string): number | Promise<number> {
    const { rules, ignored } = this.#deps;
    const positions = allReady<[rulesChangedAt: number, ignoredChangedAt: number]>([
      rules.changedAt(userId),
      ignored.changedAt(userId),
    ]);
    return whenReady(positions, ([rulesChangedAt, ignoredChangedAt]) =>
      Math.max(rulesChangedAt, ignoredChangedAt),
    );
  }

  #displayName(head: RoomHead, userId: string): string | undefined | Promise<string | undefined> {
    const { events } = this.#deps.engine;
    const entry = head.entry('m.room.member', userId);
    if (!entry) return undefined;
    const cachedName = this.#displayNames.get(entry.nid);
    if (cachedName !== undefined) return cachedName;
    const membershipEvent = events.peek(entry.nid) ?? this.#stateEvents.get(entry.nid);
    return whenReady(membershipEvent, (stored) => {
      const name = stored ? displayNameIn(stored) : '';
      this.#displayNames.set(entry.nid, name);
      return name;
    });
  }
}

function displayNameIn({ event }: StoredEvent): string {
  const name = event.content['displayname'];
  return typeof name === 'string' ? name : '';
}

/**
 * Whether an event is read and certainly on the main timeline, because it relates to no other event. Does not look up
 * the threads of events, so an event for which this is false may still be read.
 */
export function isReadOnMainTimeline({ event, stream = 0 }: StoredEvent, read: ReadUpTo): boolean {
  return stream <= read.thread() && relationOf(event.content) === undefined;
}

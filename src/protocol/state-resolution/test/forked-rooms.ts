import { resolveState } from '../../../../test/support/rooms/resolve-state.ts';
import { authorize, selectAuthEventKeys } from '../../authorization/index.ts';
import { type EventFields, testEvent, version } from '../../authorization/test/test-events.ts';
import { type RoomEvent, type StateMap, stateMapKey } from '../../event.ts';
import type { RoomVersion } from '../../room-versions.ts';
import { MemorySource } from './memory-source.ts';
import { Random } from './random.ts';
import { randomAction } from './room-actions.ts';

/** A room whose history forked, and some of its past states. */
export interface ForkedRoom {
  readonly version: RoomVersion;
  readonly source: MemorySource;
  readonly states: readonly StateMap<string>[];
}

const users = ['@ann:a', '@bob:b', '@cat:c', '@dan:d', '@eve:e'] as const;

/** The versions that have state resolution v2 or v2.1; the only one with v2.1 is repeated, so that it is chosen more often. */
const versions = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12, 12].map(version);

/**
 * Makes a random room of any version since v2 that grew on several branches at once. Each branch starts from
 * a past state of another branch, or from the resolution of two states. On each branch users do what they are
 * allowed to do there. Their clocks are wrong, event ids are random, and a few events count as rejected.
 */
export function makeForkedRoom(seed: number): ForkedRoom {
  const random = new Random(seed);
  const room = new GrowingRoom(random.pick(versions), random);
  const pastStates: StateMap<string>[] = [room.start()];
  for (let branches = random.between(2, 6); branches > 0; branches--) {
    let state = random.pick(pastStates);
    if (random.chance(0.25))
      state = resolveState(room.version, [state, random.pick(pastStates)], room.source);
    for (let steps = random.between(1, 10); steps > 0; steps--) {
      state = room.grow(state);
      pastStates.push(state);
    }
  }
  const count = random.pick([2, 2, 2, 3, 4]);
  const states = Array.from({ length: count }, () => random.pick(pastStates.slice(-20)));
  return { version: room.version, source: room.source, states };
}

/** Collects the events of a room while it grows. */
class GrowingRoom {
  readonly version: RoomVersion;
  readonly source = new MemorySource();
  readonly #random: Random;
  readonly #createId: string;
  readonly #roomId: string;

  constructor(roomVersion: RoomVersion, random: Random) {
    this.version = roomVersion;
    this.#random = random;
    this.#createId = this.#newId();
    this.#roomId = roomVersion.roomId === 'origin' ? '!room:a' : `!${this.#createId.slice(1)}`;
  }

  /** Returns the state after the first events of the room. */
  start(): StateMap<string> {
    const [ann, bob, cat] = users;
    const additional = this.#random.chance(0.3) ? { additional_creators: [cat] } : {};
    const bobsLevel = this.#random.pick([50, 100]);
    const levels = this.version.privilegedCreators ? { [bob]: bobsLevel } : { [ann]: 100, [bob]: bobsLevel };
    const first: EventFields[] = [
      {
        type: 'm.room.create',
        sender: ann,
        stateKey: '',
        content: { creator: ann, ...additional },
        eventId: this.#createId,
        prevEventIds: [],
      },
      {
        type: 'm.room.member',
        sender: ann,
        stateKey: ann,
        content: { membership: 'join' },
        prevEventIds: [this.#createId],
      },
      { type: 'm.room.power_levels', sender: ann, stateKey: '', content: { users: levels } },
      { type: 'm.room.join_rules', sender: ann, stateKey: '', content: { join_rule: 'public' } },
      { type: 'm.room.member', sender: bob, stateKey: bob, content: { membership: 'join' } },
      { type: 'm.room.member', sender: cat, stateKey: cat, content: { membership: 'join' } },
    ];
    // Leaves some out, because rooms without power levels or join rules exist.
    const kept = first.filter((_, index) => index < 2 || this.#random.chance(0.93));
    return kept.reduce<StateMap<string>>((state, fields) => this.#send(fields, state), new Map());
  }

  /**
   * Returns the state after one more event, or the same state if none of a few random actions was allowed.
   */
  grow(state: StateMap<string>): StateMap<string> {
    const powerLevelsId = state.get(stateMapKey('m.room.power_levels', ''));
    const powerLevels = powerLevelsId === undefined ? undefined : this.source.event(powerLevelsId);
    for (let attempts = 0; attempts < 4; attempts++) {
      const after = this.#send(randomAction(this.#random, users, powerLevels?.content ?? {}), state);
      if (after !== state) return after;
    }
    return state;
  }

  #send(fields: EventFields, state: StateMap<string>): StateMap<string> {
    const event = this.#build(fields, state);
    const { allowed } = authorize(event, (type, stateKey) => {
      const id = state.get(stateMapKey(type, stateKey));
      return id === undefined ? undefined : this.source.event(id);
    });
    if (!allowed) return state;
    this.source.add(event);
    // Marks a few as rejected, because one server may reject what another has allowed.
    if (event.type !== 'm.room.create' && this.#random.chance(0.02)) this.source.rejected.add(event.eventId);
    return new Map(state).set(stateMapKey(event.type, event.stateKey!), event.eventId);
  }

  #build(fields: EventFields, state: StateMap<string>): RoomEvent {
    const draft = {
      eventId: this.#newId(),
      roomId: this.#roomId,
      originServerTs: this.#random.between(0, 12),
      ...fields,
    };
    const keys = selectAuthEventKeys(testEvent(this.version, draft), this.version);
    const authEventIds = keys.map((key) => state.get(key)).filter((id) => id !== undefined);
    return testEvent(this.version, { ...draft, authEventIds });
  }

  #newId(): string {
    return `$${Math.floor(this.#random.next() * 2 ** 32).toString(36)}`;
  }
}

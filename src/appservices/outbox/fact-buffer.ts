import type { Devices } from '../../devices/index.ts';
import type { DeviceKeyChanges } from '../../e2ee/index.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { isHidden, type RoomFact, type RoomReader } from '../../room-engine/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import type { UserInterest } from '../interest/user-interest.ts';
import type { Fact } from './fact.ts';

/** The streams that services follow. */
export interface FactSources {
  readonly engine: Pick<RoomReader, 'stream'>;
  readonly queues: Pick<MessageQueues, 'toDeviceStream'>;
  readonly devices: Pick<Devices, 'deviceListStream'>;
  readonly keyChanges: Pick<DeviceKeyChanges, 'keyStream'>;
}

/** Maximum number of facts in memory; when there are more, all facts are read from the database. */
const maxFacts = 10_000;

/** Buffers facts (changes that the streams publish), in the order of their positions, until `FanOut` takes them. */
export class FactBuffer {
  #facts: Fact[] = [];
  /** The position after which the buffer is complete. */
  #since: number;

  /** @param tracksDeviceLists whether a service receives changes of device lists */
  constructor(
    { engine, queues, devices, keyChanges }: FactSources,
    streams: Pick<StreamReader, 'current'>,
    users: UserInterest,
    tracksDeviceLists: boolean,
  ) {
    this.#since = streams.current;
    engine.stream.subscribe((fact, position) => this.#add(roomFact(fact, position)));
    queues.toDeviceStream.subscribe(({ userId, deviceId }, position) => {
      if (users.servicesOf(userId).length > 0) this.#add({ kind: 'to-device', position, userId, deviceId });
    });
    keyChanges.keyStream.subscribe(({ userId, deviceId }, position) => {
      if (users.servicesOf(userId).length > 0) this.#add({ kind: 'key counts', position, userId, deviceId });
    });
    if (!tracksDeviceLists) return;
    devices.deviceListStream.subscribe(({ userId }, position) =>
      this.#add({ kind: 'device list', position, userId }),
    );
  }

  /** Removes and returns the facts in `(after, upTo]`; `undefined` when some of them are not in memory. */
  take(after: number, upTo: number): readonly Fact[] | undefined {
    const isComplete = after >= this.#since;
    const end = this.#facts.findIndex(({ position }) => position > upTo);
    const taken = this.#facts.splice(0, end === -1 ? this.#facts.length : end);
    // When the caller fails to handle them, its next attempt reads them from the database.
    this.#since = Math.max(this.#since, upTo);
    return isComplete ? taken.filter(({ position }) => position > after) : undefined;
  }

  /** The facts that were not taken yet. */
  get untakenFacts(): readonly Fact[] {
    return this.#facts;
  }

  #add(fact: Fact | undefined): void {
    if (!fact) return;
    this.#facts.push(fact);
    if (this.#facts.length <= maxFacts) return;
    this.#facts = [];
    this.#since = fact.position;
  }
}

function roomFact(
  { roomId, stored, onTimeline, membershipChanges }: RoomFact,
  position: number,
): Fact | undefined {
  const memberships = membershipChanges.map(({ userId, from, to }) => ({
    userId,
    wasJoined: from === 'join',
    isJoined: to === 'join',
  }));
  const isSent = (onTimeline || stored.outOfBand) && !isHidden(stored);
  if (isSent) return { kind: 'event', position, stored, memberships };
  return memberships.length > 0 ? { kind: 'memberships', position, roomId, memberships } : undefined;
}

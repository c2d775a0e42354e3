import type { Devices } from '../../devices/index.ts';
import type { DeviceKeyChanges } from '../../e2ee/index.ts';
import { FactBuffer, type StreamReader } from '../../kernel/streams/index.ts';
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

/**
 * Buffers facts (changes that the streams publish) until `FanOut` takes them.
 * @param tracksDeviceLists whether a service receives changes of device lists
 */
export function bufferFacts(
  { engine, queues, devices, keyChanges }: FactSources,
  streams: Pick<StreamReader, 'current'>,
  users: UserInterest,
  tracksDeviceLists: boolean,
): FactBuffer<Fact> {
  const buffer = new FactBuffer<Fact>(streams);
  engine.stream.subscribe((roomFact, position) => {
    const fact = factOf(roomFact, position);
    if (fact) buffer.add(fact);
  });
  queues.toDeviceStream.subscribe(({ userId, deviceId }, position) => {
    if (users.servicesOf(userId).length > 0) buffer.add({ kind: 'to-device', position, userId, deviceId });
  });
  keyChanges.keyStream.subscribe(({ userId, deviceId }, position) => {
    if (users.servicesOf(userId).length > 0) buffer.add({ kind: 'key counts', position, userId, deviceId });
  });
  if (tracksDeviceLists) {
    devices.deviceListStream.subscribe(({ userId }, position) =>
      buffer.add({ kind: 'device list', position, userId }),
    );
  }
  return buffer;
}

/** Returns the fact for services about a change in a room; `undefined` without an event or a changed membership. */
function factOf(
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

import type { Devices } from '../../devices/index.ts';
import { isHidden, type RoomReader } from '../../room-engine/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import type { UserInterest } from '../interest/user-interest.ts';
import type { Fact, MembershipFact } from './fact.ts';

export interface StoredFactsDeps {
  readonly engine: Pick<RoomReader, 'events'>;
  readonly devices: Pick<Devices, 'changedSince'>;
  readonly queues: Pick<MessageQueues, 'addressesBetween'>;
  readonly users: UserInterest;
}

/** Number of events read at a time. */
const pageSize = 500;

/**
 * Reads the facts (changes that services may have to receive) in `(after, upTo]` from the database, when the buffer does
 * not have them, for instance after a restart. Facts about changes of keys are not stored.
 */
export async function* storedFacts(
  { engine, devices, queues, users }: StoredFactsDeps,
  after: number,
  upTo: number,
): AsyncGenerator<Fact[]> {
  for await (const { from, last, events } of eventPages(engine, after, upTo)) {
    const facts: Fact[] = events.map((stored) => ({
      kind: 'event',
      position: stored.stream!,
      stored,
      memberships: membershipsOf(stored),
    }));
    for (const stored of await engine.events.outOfBandBetween(from, last)) {
      // An out-of-band membership never makes a user join a room or leave a joined room.
      if (!isHidden(stored)) facts.push({ kind: 'event', position: stored.nid, stored, memberships: [] });
    }
    for (const { userId, deviceId, position } of await queues.addressesBetween(from, last)) {
      if (users.servicesOf(userId).length > 0) facts.push({ kind: 'to-device', position, userId, deviceId });
    }
    for (const userId of await devices.changedSince(from, last)) {
      facts.push({ kind: 'device list', position: last, userId });
    }
    yield facts.sort((a, b) => a.position - b.position);
  }
}

/** Reads the memberships of users of services that the events in `(after, upTo]` set, in the order of their positions. */
export async function storedMemberships(
  { engine, users }: Pick<StoredFactsDeps, 'engine' | 'users'>,
  after: number,
  upTo: number,
): Promise<MembershipFact[]> {
  const membershipFacts: MembershipFact[] = [];
  for await (const { events } of eventPages(engine, after, upTo)) {
    for (const stored of events) {
      const memberships = membershipsOf(stored).filter(({ userId }) => users.servicesOf(userId).length > 0);
      if (memberships.length === 0) continue;
      const { roomId } = stored.event;
      membershipFacts.push({ kind: 'memberships', position: stored.stream!, roomId, memberships });
    }
  }
  return membershipFacts;
}

/** The events of all timelines with stream positions in `(from, last]`. */
interface EventPage {
  readonly from: number;
  readonly last: number;
  readonly events: readonly TimelineEvent[];
}

async function* eventPages(
  { events }: StoredFactsDeps['engine'],
  after: number,
  upTo: number,
): AsyncGenerator<EventPage> {
  for (let from = after; from < upTo; ) {
    const page = await events.between(from, upTo, pageSize);
    const last = page.length < pageSize ? upTo : (page.at(-1)?.stream ?? upTo);
    yield { from, last, events: page.filter((stored) => !isHidden(stored)) };
    from = last;
  }
}

type TimelineEvent = Awaited<ReturnType<RoomReader['events']['between']>>[number];

/**
 * Returns the change of membership that an event makes. The membership before the event is not stored. `wasJoined` is
 * therefore `undefined` when the user joins, and assumed to be `true` for other changes.
 */
function membershipsOf({ event: { type, stateKey, content } }: TimelineEvent) {
  if (type !== 'm.room.member' || stateKey === undefined) return [];
  const isJoined = content['membership'] === 'join';
  return [{ userId: stateKey, wasJoined: isJoined ? undefined : true, isJoined }];
}

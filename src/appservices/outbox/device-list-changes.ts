import type { Appservice } from '../../appservice-registry/index.ts';
import type { HeadReader, RoomReader } from '../../room-engine/index.ts';
import type { RoomInterest } from '../interest/room-interest.ts';
import type { UserInterest } from '../interest/user-interest.ts';
import type { OutboxEntry } from '../store.ts';
import type { MembershipStep } from './fact.ts';

export interface DeviceListChangesDeps {
  readonly services: readonly Appservice[];
  readonly users: UserInterest;
  readonly rooms: RoomInterest;
  readonly userRooms: Pick<RoomReader['userRooms'], 'of'>;
  readonly heads: Pick<HeadReader, 'get'>;
}

/** A service, and an entry of its outbox. */
export type ServiceEntry = readonly [Appservice, OutboxEntry];

/**
 * Number of changed memberships of one fact above which one entry stands for all joined members, for instance after a partial
 * state is completed.
 */
const maxSteps = 50;

const receives = ({ registration }: Appservice) => registration.receivesDeviceChanges;

/** Returns the same entry for several services. */
export const entriesFor = (services: Iterable<Appservice>, entry: OutboxEntry): ServiceEntry[] =>
  Array.from(services, (service) => [service, entry]);

/** Finds the services to notify of changed device lists, and of users who begin or stop to share rooms with them. */
export class DeviceListChanges {
  readonly #deps: DeviceListChangesDeps;
  /** Number of services that receive changes of device lists. */
  readonly #receivers: number;

  constructor(deps: DeviceListChangesDeps) {
    this.#deps = deps;
    this.#receivers = deps.services.filter(receives).length;
  }

  /** Returns the services that receive changes of device lists and share a room with a user. */
  async receiversOf(userId: string): Promise<Iterable<Appservice>> {
    const { users, rooms, userRooms } = this.#deps;
    const isCached = (roomId: string) => rooms.isCached(roomId);
    const found = new Set<Appservice>(users.servicesOf(userId).filter(receives));
    const joined = [...(await userRooms.of(userId))].flatMap(([roomId, { membership }]) =>
      membership === 'join' ? [roomId] : [],
    );
    // Rooms in the cache first, and no more than needed, since the others have to be loaded.
    for (const roomId of [...joined.filter(isCached), ...joined.filter((id) => !isCached(id))]) {
      if (found.size === this.#receivers) break;
      for (const service of await rooms.servicesOf(roomId)) if (receives(service)) found.add(service);
    }
    return found;
  }

  /**
   * Returns entries about users who begin or stop to share an encrypted room with a service, after changes of memberships.
   * Must be called before the changes are applied to the cached services of the room. Where a user of the service enters or
   * leaves the room, one entry stands for all members.
   */
  async afterMemberships(roomId: string, steps: readonly MembershipStep[]): Promise<ServiceEntry[]> {
    const { users, rooms, heads } = this.#deps;
    const moved = steps.filter(({ wasJoined, isJoined }) => wasJoined !== isJoined);
    if (this.#receivers === 0 || moved.length === 0) return [];
    const inRoom = (await rooms.servicesOf(roomId)).filter(receives);
    const own = (userId: string) => users.servicesOf(userId).filter(receives);
    if (inRoom.length === 0 && moved.every(({ userId }) => own(userId).length === 0)) return [];
    const head = await heads.get(roomId);
    if (head?.entry('m.room.encryption', '') === undefined) return [];
    const entries = new Map<string, ServiceEntry>();
    for (const { userId, isJoined } of moved) {
      const services = own(userId);
      const ofRoom = services.filter((service) => !isJoined || !inRoom.includes(service));
      const others = inRoom.filter((service) => !services.includes(service));
      const kind = isJoined ? 'device list' : 'unshared user';
      const subject = isJoined && moved.length > maxSteps ? roomId : userId;
      for (const [service, entry] of [
        ...entriesFor(ofRoom, { kind, event_nid: 0, subject: roomId }),
        ...entriesFor(others, { kind, event_nid: 0, subject }),
      ]) {
        entries.set(`${service.id} ${entry.kind} ${entry.subject}`, [service, entry]);
      }
    }
    return [...entries.values()];
  }
}

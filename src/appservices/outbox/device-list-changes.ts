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
export type ServiceEntry = readonly [service: Appservice, entry: OutboxEntry];

/**
 * Maximum number of membership changes at once for which each joining user has an entry. With more changes, for
 * instance after a partial state is completed, one entry stands for all joined members.
 */
const maxSteps = 50;

const receivesDeviceChanges = ({ registration }: Appservice) => registration.receivesDeviceChanges;

/** Returns the same entry for several services. */
export const entriesFor = (services: Iterable<Appservice>, entry: OutboxEntry): ServiceEntry[] =>
  Array.from(services, (service) => [service, entry]);

/** Finds the services to notify when device lists change, or when users begin or stop to share rooms with a service. */
export class DeviceListChanges {
  readonly #deps: DeviceListChangesDeps;
  /** Number of services that receive changes of device lists. */
  readonly #receiverCount: number;

  constructor(deps: DeviceListChangesDeps) {
    this.#deps = deps;
    this.#receiverCount = deps.services.filter(receivesDeviceChanges).length;
  }

  /** Returns the services that receive changes of device lists and share a room with a user. */
  async receiversOf(userId: string): Promise<Iterable<Appservice>> {
    const { users, rooms, userRooms } = this.#deps;
    const isCached = (roomId: string) => rooms.isCached(roomId);
    const receivers = new Set<Appservice>(users.servicesOf(userId).filter(receivesDeviceChanges));
    const joined = [...(await userRooms.of(userId))].flatMap(([roomId, { membership }]) =>
      membership === 'join' ? [roomId] : [],
    );
    // Begins with the rooms in the cache, and reads no more rooms than needed, since the other rooms have to be loaded.
    for (const roomId of [...joined.filter(isCached), ...joined.filter((id) => !isCached(id))]) {
      if (receivers.size === this.#receiverCount) break;
      for (const service of await rooms.servicesOf(roomId))
        if (receivesDeviceChanges(service)) receivers.add(service);
    }
    return receivers;
  }

  /**
   * Returns entries about users who begin or stop to share an encrypted room with a service, after changes of
   * memberships. Must be called before the changes are applied to the cached services of the room. When a user of the
   * service itself enters or leaves the room, one entry stands for all members.
   */
  async afterMemberships(roomId: string, steps: readonly MembershipStep[]): Promise<ServiceEntry[]> {
    const { users, rooms, heads } = this.#deps;
    const changed = steps.filter(({ wasJoined, isJoined }) => wasJoined !== isJoined);
    if (this.#receiverCount === 0 || changed.length === 0) return [];
    const servicesInRoom = (await rooms.servicesOf(roomId)).filter(receivesDeviceChanges);
    const servicesOf = (userId: string) => users.servicesOf(userId).filter(receivesDeviceChanges);
    if (servicesInRoom.length === 0 && changed.every(({ userId }) => servicesOf(userId).length === 0))
      return [];
    const head = await heads.get(roomId);
    if (head?.entry('m.room.encryption', '') === undefined) return [];
    const entries = new Map<string, ServiceEntry>();
    for (const { userId, isJoined } of changed) {
      const services = servicesOf(userId);
      const servicesForAllMembers = services.filter(
        (service) => !isJoined || !servicesInRoom.includes(service),
      );
      const otherServices = servicesInRoom.filter((service) => !services.includes(service));
      const kind = isJoined ? 'device list' : 'unshared user';
      const subject = isJoined && changed.length > maxSteps ? roomId : userId;
      for (const [service, entry] of [
        ...entriesFor(servicesForAllMembers, { kind, event_nid: 0, subject: roomId }),
        ...entriesFor(otherServices, { kind, event_nid: 0, subject }),
      ]) {
        entries.set(`${service.id} ${entry.kind} ${entry.subject}`, [service, entry]);
      }
    }
    return [...entries.values()];
  }
}

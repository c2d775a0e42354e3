import { type Requester, useAdministratorRight } from '../../kernel/http/index.ts';
import { forbidden, notFound, PowerLevels } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import type { PublishedRooms } from '../../rooms/index.ts';

/**
 * Adds rooms to the public room list and removes them. Source: client-server API, "Published room directory".
 */
export class Publication {
  readonly #engine: RoomReader;
  readonly #published: PublishedRooms;

  constructor(engine: RoomReader, published: PublishedRooms) {
    this.#engine = engine;
    this.#published = published;
  }

  /** @throws MatrixError M_NOT_FOUND for unknown rooms */
  async isPublished(roomId: string): Promise<boolean> {
    await this.#head(roomId);
    return this.#published.isPublished(roomId);
  }

  /**
   * Adds a room to the list, or removes it. The requester must be a member with the power level for
   * `m.room.canonical_alias`, or an administrator of the server.
   * @throws MatrixError M_NOT_FOUND; M_FORBIDDEN, also when the operator's rules deny the publication
   */
  async set(requester: Requester, roomId: string, publish: boolean): Promise<void> {
    const head = await this.#head(roomId);
    if (!(await this.#maySetCanonicalAlias(head, requester.userId))) {
      if (!requester.isAdmin)
        throw forbidden('You do not have permission to change the visibility of this room');
      useAdministratorRight();
    }
    if (publish && !(await this.#published.mayPublish(requester.userId, roomId))) {
      throw forbidden(
        'The rules of this server (room_list_publication_rules) do not allow you to publish this room',
      );
    }
    await this.#published.checkVisibility(roomId, publish);
    await this.#published.set(roomId, publish);
  }

  /**
   * Sets the visibility of a room in the list of an application service's network. The operator's rules do not restrict
   * these lists.
   * @param network id of the network as the application service knows it
   */
  async setForNetwork(appservice: string, network: string, roomId: string, publish: boolean): Promise<void> {
    await this.#head(roomId);
    await this.#published.set(roomId, publish, instanceId(appservice, network));
  }

  async #head(roomId: string): Promise<RoomHead> {
    const head = await this.#engine.heads.get(roomId);
    if (!head) throw notFound('Room not found');
    return head;
  }

  async #maySetCanonicalAlias(head: RoomHead, userId: string): Promise<boolean> {
    if (head.membership(userId) !== 'join') return false;
    const [create, levels] = await Promise.all(
      ['m.room.create', 'm.room.power_levels'].map(async (type) => {
        const entry = head.entry(type, '');
        return entry && (await this.#engine.events.get(entry.nid))?.event;
      }),
    );
    return new PowerLevels(create, levels).canSend(userId, 'm.room.canonical_alias', true);
  }
}

/** Returns the id of an application service's network for clients (`third_party_instance_id`). */
export const instanceId = (appservice: string, network: string): string => `${appservice}|${network}`;

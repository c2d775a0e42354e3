import type { RoomReader, UserRoom } from '../room-engine/index.ts';
import type { InvitePolicy } from '../rooms/index.ts';

/**
 * Decides whether users see their invites. Invites by ignored users and by users whom the invitee does not allow are
 * hidden, also when they are older than the invitee's settings. Source: client-server API, "Ignoring Users" and "Invite
 * permission".
 */
export class ShownInvites {
  readonly #engine: RoomReader;
  readonly #policy: InvitePolicy;

  constructor(engine: RoomReader, policy: InvitePolicy) {
    this.#engine = engine;
    this.#policy = policy;
  }

  /** @param room a room that the user is invited to */
  async isShown(userId: string, { eventNid }: UserRoom): Promise<boolean> {
    const invite = await this.#engine.events.get(eventNid);
    return invite === undefined || (await this.#policy.decide(userId, invite.event.sender)) === 'allow';
  }
}

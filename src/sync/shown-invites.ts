import type { RoomReader, UserRoom } from '../room-engine/index.ts';
import type { InvitePolicy } from '../rooms/index.ts';

/**
 * Whether users are told of their invites: not of those by users whom they ignore, or whom they do not want to be
 * invited by. An invite that came before they said so is not told any more either.
 * Source: client-server API, "Ignoring Users" and "Invite permission".
 */
export class ShownInvites {
  readonly #engine: RoomReader;
  readonly #policy: InvitePolicy;

  constructor(engine: RoomReader, policy: InvitePolicy) {
    this.#engine = engine;
    this.#policy = policy;
  }

  /** @param room one that the user is invited to */
  async isShown(userId: string, { eventNid }: UserRoom): Promise<boolean> {
    const invite = await this.#engine.events.get(eventNid);
    return invite === undefined || (await this.#policy.decide(userId, invite.event.sender)) === 'allow';
  }
}

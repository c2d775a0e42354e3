import type { JsonObject } from '../protocol/index.ts';
import type { Requesting } from './limits.ts';

/** An invite of an address, as clients write it. */
export interface AddressInvite {
  readonly id_server: string;
  readonly id_access_token: string;
  readonly medium: string;
  readonly address: string;
}

/** Invites people by their addresses; supplied at composition. Source: client-server API, "Third-party invites". */
export interface ThirdPartyInviting {
  /** Invites whoever has an address, now or later. @throws MatrixError */
  invite(requester: Requesting, roomId: string, invite: AddressInvite): Promise<void>;
  /**
   * The same for a room that is not made yet: what can be refused is refused here.
   * @returns the users who have some of the addresses, and what invites the others once there is a room
   * @throws MatrixError
   */
  prepare(
    requester: Requesting,
    invites: readonly AddressInvite[],
  ): Promise<{ userIds: readonly string[]; inviteOthers(roomId: string): Promise<void> }>;
  /**
   * Makes an invite of what an identity server has signed for a user who joins.
   * @throws MatrixError M_FORBIDDEN when it does not fit an invite of the room
   */
  redeem(userId: string, roomId: string, signed: JsonObject): Promise<void>;
}

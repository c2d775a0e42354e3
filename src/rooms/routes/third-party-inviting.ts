import { type Static, Type } from 'typebox';
import type { JsonObject } from '../../protocol/index.ts';
import type { RequestingUser } from '../limits.ts';

/** An address that is invited, and the identity server to ask whose it is. */
export const addressInvite = Type.Object({
  id_server: Type.String(),
  id_access_token: Type.String(),
  medium: Type.String(),
  address: Type.String(),
});

export type AddressInvite = Readonly<Static<typeof addressInvite>>;

/** Invites people by their addresses; supplied at composition. Source: client-server API, "Third-party invites". */
export interface ThirdPartyInviting {
  /** Invites whoever has an address, now or later. @throws MatrixError */
  invite(requester: RequestingUser, roomId: string, invite: AddressInvite): Promise<void>;
  /**
   * The same for a room that is not made yet: what can be refused is refused here.
   * @returns the users who have some of the addresses, and what invites the others once there is a room
   * @throws MatrixError
   */
  prepare(
    requester: RequestingUser,
    invites: readonly AddressInvite[],
  ): Promise<{ userIds: readonly string[]; inviteOthers(roomId: string): Promise<void> }>;
  /**
   * Makes an invite of what an identity server has signed for a user who joins.
   * @throws MatrixError M_FORBIDDEN when it does not fit an invite of the room
   */
  redeem(userId: string, roomId: string, signed: JsonObject): Promise<void>;
}

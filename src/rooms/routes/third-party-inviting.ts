import { type Static, Type } from 'typebox';
import type { JsonObject } from '../../protocol/index.ts';
import type { RequestingUser } from '../limits.ts';

/** A third-party identifier to invite, and the identity server that looks it up. */
export const addressInvite = Type.Object({
  id_server: Type.String(),
  id_access_token: Type.String(),
  medium: Type.String(),
  address: Type.String(),
});

/** An entry of `invite_3pid`, or the body of an invite by third-party identifier. */
export type AddressInvite = Readonly<Static<typeof addressInvite>>;

/** Invites by third-party identifier; supplied at composition. Source: client-server API, "Third-party invites". */
export interface ThirdPartyInviting {
  /** Invites the user who owns the identifier, or will own it. @throws MatrixError */
  invite(requester: RequestingUser, roomId: string, invite: AddressInvite): Promise<void>;
  /**
   * Looks up the identifiers to invite to a room that is being created. Throws here, before the room is created, every
   * error that does not depend on the room.
   * @returns the user ids of the identifiers' owners, as far as they are known, and a function that invites the other
   * identifiers once the room exists
   * @throws MatrixError
   */
  prepare(
    requester: RequestingUser,
    invites: readonly AddressInvite[],
  ): Promise<{ userIds: readonly string[]; inviteOthers(roomId: string): Promise<void> }>;
  /**
   * Creates the invite for a user who joins a room with `third_party_signed`. An identity server has signed this
   * object: it proves that a third-party invite of the room is for this user.
   * @param signed the field `third_party_signed` of the join
   * @throws MatrixError M_FORBIDDEN when the object does not match a third-party invite of the room
   */
  redeem(userId: string, roomId: string, signed: JsonObject): Promise<void>;
}

import type { EventSigner, JsonObject } from '../../protocol/index.ts';
import type {
  CheckReceivedInvite,
  PrejoinStateKeys,
  RoomWriter,
  ServerAcls,
} from '../../room-engine/index.ts';
import type { Incoming, ServedState } from '../../room-federation/index.ts';
import type { Memberships, Throttle } from '../../rooms/index.ts';
import type { RoomAccess } from '../room-access.ts';

/** Dependencies of the handshakes in which users of other servers join, knock, leave and invite. */
export interface HandshakeDeps {
  readonly access: RoomAccess;
  readonly engine: RoomWriter;
  readonly serverAcls: ServerAcls;
  readonly incoming: Pick<Incoming, 'verify'>;
  readonly memberships: Memberships;
  readonly throttle: Throttle;
  readonly state: ServedState;
  readonly serverName: string;
  readonly signer: EventSigner;
  /** Types and state keys of the state events that knocking users see. */
  readonly prejoinStateKeys: PrejoinStateKeys;
  /** Invites the user who owns an address that `sender` has invited, if the signed object is valid. */
  readonly redeemThirdPartyInvite: (roomId: string, sender: string, signed: JsonObject) => Promise<void>;
  /** Checks an invite of a local user by a remote user; absent: there are no further rules. @throws MatrixError */
  readonly checkInvite?: CheckReceivedInvite | undefined;
}

/** The membership that a user of another server requests in a room of this server. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

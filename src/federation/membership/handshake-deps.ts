import type { EventSigner, JsonObject } from '../../protocol/index.ts';
import type { PrejoinKeys, RoomWriter, ServerAcls } from '../../room-engine/index.ts';
import type { Incoming, ServedState } from '../../room-federation/index.ts';
import type { Memberships, Throttle } from '../../rooms/index.ts';
import type { RoomAccess } from '../room-access.ts';

/** What it takes to let users of other servers into rooms and out, and to be invited by them. */
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
  /** What of a room those are shown who knock. */
  readonly prejoinKeys: PrejoinKeys;
  /** Invites the user who has an address that `sender` has invited, if what was signed for them is right. */
  readonly redeem: (roomId: string, sender: string, signed: JsonObject) => Promise<void>;
}

/** What a user of another server wants to become in a room that this server is in. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

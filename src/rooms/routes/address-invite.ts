import { Type } from 'typebox';

/** An address that is invited, and the identity server to ask whose it is. */
export const addressInvite = Type.Object({
  id_server: Type.String(),
  id_access_token: Type.String(),
  medium: Type.String(),
  address: Type.String(),
});

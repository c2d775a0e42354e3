import { Type } from 'typebox';
import { type JsonObject, serverOfUser } from '../../protocol/index.ts';
import type { LoginDevice, OpenedSession } from '../sessions/opened-session.ts';

/** The response of `/register` and `/login`. */
export const sessionResponse = Type.Object({
  user_id: Type.String(),
  home_server: Type.String(),
  access_token: Type.Optional(Type.String()),
  device_id: Type.Optional(Type.String()),
  refresh_token: Type.Optional(Type.String()),
  expires_in_ms: Type.Optional(Type.Integer()),
});

/** Returns the response with the tokens of a session; without a session, it names only the user. */
export function toSessionResponse(userId: string, session: OpenedSession | undefined): JsonObject {
  return {
    user_id: userId,
    home_server: serverOfUser(userId),
    access_token: session?.accessToken,
    device_id: session?.deviceId,
    refresh_token: session?.refreshToken,
    expires_in_ms: session?.expiresInMs,
  };
}

/** Members about the device in the request bodies of `/register` and `/login`. */
export const loginDeviceFields = {
  device_id: Type.Optional(Type.String()),
  initial_device_display_name: Type.Optional(Type.String()),
  refresh_token: Type.Optional(Type.Boolean()),
};

/** Returns the device that the body of a request describes. */
export const toLoginDevice = (body: {
  device_id?: string;
  initial_device_display_name?: string;
  refresh_token?: boolean;
}): LoginDevice => ({
  deviceId: body.device_id,
  displayName: body.initial_device_display_name,
  refreshable: body.refresh_token === true,
});

import type { JsonObject } from '../protocol/index.ts';
import type { NoticeOptions } from './config.ts';

/**
 * The sender of the notices. Not an account, so that no client can log in as this user; an older account may have the
 * id.
 */
export interface NoticesUser {
  readonly userId: string;
  /** Display name and avatar. */
  readonly profile: JsonObject;
}

/** Returns the user whom the options name. Source: interface document, "server_notices". */
export function noticesUser(options: NoticeOptions, serverName: string): NoticesUser {
  const { system_mxid_localpart, system_mxid_display_name: name, system_mxid_avatar_url: avatar } = options;
  return {
    userId: `@${system_mxid_localpart}:${serverName}`,
    profile: { ...(name && { displayname: name }), ...(avatar && { avatar_url: avatar }) },
  };
}

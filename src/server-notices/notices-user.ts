import type { JsonObject } from '../protocol/index.ts';
import type { NoticeOptions } from './config.ts';

/** Who sends the notices. There is no account of that name, so that nobody can log in to it. */
export interface NoticesUser {
  readonly userId: string;
  /** What it is called, and its avatar. */
  readonly profile: JsonObject;
}

/** The user whom the options name. Source: requirement document 2, "server_notices". */
export function noticesUser(options: NoticeOptions, serverName: string): NoticesUser {
  const { system_mxid_localpart, system_mxid_display_name: name, system_mxid_avatar_url: avatar } = options;
  return {
    userId: `@${system_mxid_localpart}:${serverName}`,
    profile: { ...(name && { displayname: name }), ...(avatar && { avatar_url: avatar }) },
  };
}

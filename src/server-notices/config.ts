import {
  boolean,
  localpart,
  nullable,
  object,
  option,
  type SectionType,
  section,
  string,
} from '../kernel/config/index.ts';

const notices = object({
  system_mxid_localpart: option(localpart(), {
    description: 'The user who sends the notices: the part of the id before the colon, without `@`.',
    required: true,
  }),
  system_mxid_display_name: option(string(), { description: 'The name of that user.', default: 'Notices' }),
  system_mxid_avatar_url: option(nullable(string()), {
    description: 'The avatar of that user.',
    default: null,
  }),
  room_name: option(string(), {
    description: 'The name of the rooms in which notices are sent.',
    default: 'Server Notices',
  }),
  room_avatar_url: option(nullable(string()), {
    description: 'The avatar of those rooms. An empty text removes it.',
    default: null,
    since: '1.99.0',
  }),
  room_topic: option(nullable(string()), {
    description: 'The topic of those rooms. An empty text removes it.',
    default: null,
    since: '1.99.0',
  }),
  auto_join: option(boolean(), {
    description: 'Joins users to the room instead of inviting them.',
    default: false,
    since: '1.98.0',
  }),
});

/** Notices that administrators, or the server by itself, send to users. */
export const serverNoticesSection = section({
  title: 'Server notices',
  options: {
    server_notices: option(nullable(notices), {
      description:
        'Rooms in which the server sends notices to each of its users. Users cannot leave them. A changed name, topic or avatar appears with the next notice. Null turns notices off.',
      default: null,
    }),
  },
});

export type ServerNoticesConfig = SectionType<typeof serverNoticesSection>;

/** The options of server notices if these are enabled. */
export type NoticeOptions = NonNullable<ServerNoticesConfig['server_notices']>;

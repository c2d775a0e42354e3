import type { Static } from 'typebox';
import {
  boolean,
  glob,
  list,
  nullable,
  object,
  oneOf,
  option,
  type SectionType,
  section,
} from '../kernel/config/index.ts';

const pattern = (description: string) => option(nullable(glob()), { description, default: '*' });

const rule = object({
  user_id: pattern('Which users the rule is about. Null stands for `*`.'),
  alias: pattern('Which room aliases the rule is about. Null stands for `*`.'),
  room_id: pattern('Which rooms the rule is about. Null stands for `*`.'),
  action: option(oneOf('allow', 'deny'), { description: 'What the rule decides.', default: 'allow' }),
});

/** One entry of `alias_creation_rules` or `room_list_publication_rules`. */
export type DirectoryRule = Static<typeof rule>;

/** Aliases, the list of public rooms, and the directory of users. */
export const directorySection = section({
  title: 'Directories of rooms and users',
  options: {
    allow_public_rooms_without_auth: option(boolean(), {
      description: 'Shows the list of public rooms over the client API without a login.',
      default: false,
    }),
    allow_public_rooms_over_federation: option(boolean(), {
      description: 'Shows the list of public rooms to other servers.',
      default: false,
    }),
    enable_room_list_search: option(boolean(), {
      description: 'Lets users search the list of public rooms. When off, every search finds nothing.',
      default: true,
    }),
    alias_creation_rules: option(nullable(list(rule)), {
      description:
        'Who may give rooms which aliases. The first rule that matches decides, and patterns match whole ids; when none matches, the alias is denied. Null allows all, an empty list none.',
      default: null,
    }),
    room_list_publication_rules: option(nullable(list(rule)), {
      description:
        'Who may publish which rooms in the list of public rooms, in the manner of `alias_creation_rules`. A pattern for aliases is met by any alias of the room; a room without aliases meets only `*`. Null lets administrators publish and nobody else. A new public room that no rule lets in is made but not listed.',
      default: null,
      changed: ['1.126.0: null no longer lets everybody publish.'],
    }),
    user_directory: option(
      object({
        enabled: option(boolean(), {
          description: 'Lets users search for users. When off, every search finds nobody.',
          default: true,
        }),
        search_all_users: option(boolean(), {
          description:
            'Finds every user that this server knows. When off, finds those in public rooms and those who share a room with the searcher.',
          default: false,
          changed: ['1.44: indexes built before this release must be rebuilt.'],
        }),
        prefer_local_users: option(boolean(), {
          description: 'Lists users of this server first.',
          default: false,
        }),
        exclude_remote_users: option(boolean(), {
          description: 'Lists users of this server only.',
          default: false,
        }),
        show_locked_users: option(boolean(), {
          description: 'Lists users whose account is locked, too.',
          default: false,
        }),
      }),
      { description: 'The directory of users.' },
    ),
    stats: option(
      object({
        enabled: option(boolean(), {
          description:
            'Keeps statistics of rooms and users. Without them some features, such as the list of public rooms, may not work well.',
          default: true,
        }),
      }),
      { description: 'Statistics of rooms and users.' },
    ),
  },
});

export type DirectoryConfig = SectionType<typeof directorySection>;

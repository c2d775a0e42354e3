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
  user_id: pattern('The users to whom the rule applies. Null means `*`.'),
  alias: pattern('The room aliases to which the rule applies. Null means `*`.'),
  room_id: pattern('The rooms to which the rule applies. Null means `*`.'),
  action: option(oneOf('allow', 'deny'), { description: 'The decision of the rule.', default: 'allow' }),
});

/** One entry of `alias_creation_rules` or `room_list_publication_rules`. */
export type DirectoryRule = Static<typeof rule>;

/** Aliases, the public room list, and the user directory. */
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
      description: 'Lets users search the list of public rooms. When off, every search returns no rooms.',
      default: true,
    }),
    alias_creation_rules: option(nullable(list(rule)), {
      description:
        'Which users may create which room aliases. The first rule that matches decides, and patterns match whole ids; when none matches, the alias is denied. Null allows all aliases, an empty list none.',
      default: null,
    }),
    room_list_publication_rules: option(nullable(list(rule)), {
      description:
        'Which users may publish which rooms in the list of public rooms. Works like `alias_creation_rules`. A pattern for aliases matches if it matches any alias of the room; a room without aliases matches only `*`. Null lets only administrators publish rooms. A new public room that no rule allows is created but not listed.',
      default: null,
      changed: ['1.126.0: null lets only administrators publish rooms; before, it let all users.'],
    }),
    user_directory: option(
      object({
        enabled: option(boolean(), {
          description: 'Lets users search for users. When off, every search returns no users.',
          default: true,
        }),
        search_all_users: option(boolean(), {
          description:
            'Searches all users that this server knows. When off, searches only users in public rooms and users who share a room with the searcher.',
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
            'Collects statistics of rooms. Without these statistics, the list of public rooms is empty, and the list of rooms in the admin API is not updated.',
          default: true,
        }),
      }),
      { description: 'Statistics of rooms and users.' },
    ),
  },
});

export type DirectoryConfig = SectionType<typeof directorySection>;

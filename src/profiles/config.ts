import {
  boolean,
  list,
  nullable,
  option,
  type SectionType,
  section,
  size,
  string,
} from '../kernel/config/index.ts';

/** Options about display names and avatars. */
export const profilesSection = section({
  title: 'Profiles',
  options: {
    require_auth_for_profile_requests: option(boolean(), {
      description: 'Shows profiles over the client API to logged-in users only.',
      default: false,
    }),
    limit_profile_requests_to_users_who_share_rooms: option(boolean(), {
      description: 'Shows a profile over the client API only to users who share a room with its owner.',
      default: false,
    }),
    allow_profile_lookup_over_federation: option(boolean(), {
      description: 'Shows the profiles of local users to other servers.',
      default: true,
    }),
    enable_set_displayname: option(boolean(), {
      description: 'Lets users change their display name. Administrators always can.',
      default: true,
    }),
    enable_set_avatar_url: option(boolean(), {
      description: 'Lets users change their avatar. Administrators always can.',
      default: true,
    }),
    max_avatar_size: option(nullable(size()), {
      description:
        "The maximum size of an avatar; null sets no limit. With a limit, avatars must be in this server's own media repository.",
      default: null,
      unit: 'bytes',
    }),
    allowed_avatar_mimetypes: option(
      nullable(
        list(string({ pattern: '^[^/\\s]+/[^/\\s]+$', allowed: 'a media type, for instance image/png' })),
      ),
      {
        description:
          "The MIME types of files that can become avatars; null allows all. With a list, avatars must be in this server's own media repository.",
        default: null,
      },
    ),
  },
});

export type ProfilesConfig = SectionType<typeof profilesSection>;

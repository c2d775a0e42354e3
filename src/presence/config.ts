import { boolean, object, oneOf, option, type SectionType, section } from '../kernel/config/index.ts';

/** Who is online. */
export const presenceSection = section({
  title: 'Presence',
  options: {
    presence: option(
      object({
        enabled: option(oneOf(true, false, 'untracked'), {
          description:
            'Tells users who is online. With `untracked`, only modules can say so: what clients and other servers report is ignored.',
          default: true,
          changed: ['1.96.0: adds `untracked`.'],
          deprecatedNames: ['use_presence'],
        }),
        include_offline_users_on_sync: option(boolean(), {
          description: 'Mentions users who are offline too, in an initial sync and in one with `full_state`.',
          default: false,
        }),
      }),
      { description: 'Presence of users.' },
    ),
  },
});

export type PresenceConfig = SectionType<typeof presenceSection>;

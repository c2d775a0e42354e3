import { boolean, object, oneOf, option, type SectionType, section } from '../kernel/config/index.ts';

/** Options for the presence of users. */
export const presenceSection = section({
  title: 'Presence',
  options: {
    presence: option(
      object({
        enabled: option(oneOf(true, false, 'untracked'), {
          description:
            'Shows users who else is online. With `untracked`, only modules can set presence: updates from clients and other servers are ignored.',
          default: true,
          changed: ['1.96.0: adds `untracked`.'],
          deprecatedNames: ['use_presence'],
        }),
        include_offline_users_on_sync: option(boolean(), {
          description: 'Includes users who are offline in an initial sync, and in a sync with `full_state`.',
          default: false,
        }),
      }),
      { description: 'Presence of users.' },
    ),
  },
});

export type PresenceConfig = SectionType<typeof presenceSection>;

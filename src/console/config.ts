import { boolean, object, option, type SectionType, section } from '../kernel/config/index.ts';

/** Options of the console for administrators. */
export const consoleSection = section({
  title: 'Administration console',
  description: 'Pages for server administrators. They use the admin API.',
  options: {
    admin_console: option(
      object({
        enabled: option(boolean(), {
          description:
            'Serves the console at `/_server/admin/ui`, on listeners with the resource `client`. Its pages contain no data; they read all data from the admin API, which only administrators can use.',
          default: true,
        }),
      }),
      { description: 'The console for administrators.' },
    ),
  },
});

export type ConsoleConfig = SectionType<typeof consoleSection>;

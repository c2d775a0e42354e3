import { readRegistrations } from '../appservice-registry/index.ts';
import { boolean, list, option, type Rule, section, string } from '../kernel/config/index.ts';

/** Checks the registration files. Each reported problem names its place in a registration file. */
const registrationFiles: Rule<{ readonly app_service_config_files: readonly string[] }> = (
  { app_service_config_files: files },
  view,
) => {
  const { errors, warnings } = readRegistrations(files);
  for (const { index, message } of errors) view.error(`app_service_config_files[${index}]`, message);
  for (const { index, message } of warnings) view.warn(`app_service_config_files[${index}]`, message);
};

/** The options of application services, for instance bridges and bots. */
export const appservicesSection = section({
  title: 'Application services',
  options: {
    app_service_config_files: option(list(string({ minLength: 1 })), {
      description: 'The registration files of application services.',
      default: [],
    }),
    track_appservice_user_ips: option(boolean(), {
      description:
        'Stores the visits of users of application services (address, device and time), which makes them count as active users.',
      default: false,
    }),
    use_appservice_legacy_authorization: option(boolean(), {
      description:
        'Also sends the token of an application service in the query of URLs, for old application services. This is not safe, because URLs end up in logs.',
      default: false,
    }),
  },
  rules: [registrationFiles],
});

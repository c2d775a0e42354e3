import { boolean, list, nullable, object, option, string } from '../../kernel/config/index.ts';

export const ssoOption = option(
  object({
    client_whitelist: option(nullable(list(string({ minLength: 1 }))), {
      description:
        'Beginnings of URLs of clients that users are sent back to without being asked. Write the slash behind the host, or other hosts fit too. The login page of this server is always among them.',
      default: null,
    }),
    update_profile_information: option(boolean(), {
      description: 'Takes over the display name from the provider at every login.',
      default: false,
    }),
  }),
  { description: 'All kinds of single sign-on.' },
);

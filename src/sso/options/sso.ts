import { boolean, list, nullable, object, option, string } from '../../kernel/config/index.ts';

export const ssoOption = option(
  object({
    client_whitelist: option(nullable(list(string({ minLength: 1 }))), {
      description:
        'Prefixes of client URLs to which users are redirected without a confirmation. End a host with a slash, otherwise longer host names match too. The login page of this server is always included.',
      default: null,
    }),
    update_profile_information: option(boolean(), {
      description: 'Updates the display name and the avatar from the provider at every login.',
      default: false,
    }),
  }),
  { description: 'Options that apply to all kinds of single sign-on.' },
);

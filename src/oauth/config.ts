import { boolean, object, option, type SectionType, section } from '../kernel/config/index.ts';

/** Options of the authorization server that is part of this server. */
export const oauthSection = section({
  title: 'OAuth 2.0',
  description:
    'Lets clients log in by the OAuth 2.0 API of the specification, on pages of this server, without a separate service. Older ways to log in keep working.',
  options: {
    oauth2: option(
      object({
        enabled: option(boolean(), {
          description:
            'Serves the OAuth 2.0 API, which clients discover and prefer. Needs `public_baseurl`, unless clients reach the server at `https://` followed by the server name.',
          default: false,
        }),
      }),
      { description: 'The authorization server that is part of this server.' },
    ),
  },
});

export type OAuthConfig = SectionType<typeof oauthSection>;

import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';

export interface WhitelistOptions {
  readonly federation_whitelist_endpoint_enabled: boolean;
  readonly federation_domain_whitelist: readonly string[] | null;
}

/** Shows the federation whitelist to users, where the operator enables it. */
export function whitelistRoutes(options: WhitelistOptions): Route[] {
  if (!options.federation_whitelist_endpoint_enabled) return [];
  const { federation_domain_whitelist: whitelist } = options;
  const body = { whitelist_enabled: whitelist !== null, whitelist: whitelist ?? [] };
  return [
    route(
      {
        method: 'GET',
        path: '/_server/client/v1/config/federation_whitelist',
        auth: 'user',
        response: Type.Object({ whitelist_enabled: Type.Boolean(), whitelist: Type.Array(Type.String()) }),
      },
      () => body,
    ),
  ];
}

import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';

export interface WhitelistOptions {
  readonly federation_whitelist_endpoint_enabled: boolean;
  readonly federation_domain_whitelist: readonly string[] | null;
}

/** Shows users with which servers there is federation, where the operator wants that. */
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

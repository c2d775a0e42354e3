import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import { flag, nothing } from '../response-fields.ts';
import type { LocalUsers } from './local-user.ts';

const path = '/_server/admin/v1/experimental_features/:userId';

/**
 * The experimental features that the reference server can turn on for a user: remote control of pushers, sliding sync and
 * `state_after` in /sync. This server offers them to all users.
 */
const features = { msc3881: true, msc3575: true, msc4222: true } as const;

/** Shows the experimental features of a user. They are on for all users and cannot be turned off for one. */
export function experimentalFeatureRoutes(users: LocalUsers): Route[] {
  return [
    route(
      {
        operationId: 'getExperimentalFeatures',
        method: 'GET',
        path,
        auth: 'admin',
        response: Type.Object({ features: Type.Object({ msc3881: flag, msc3575: flag, msc4222: flag }) }),
      },
      async ({ params: { userId } }) => {
        await users.get(userId);
        return { features };
      },
    ),
    route(
      {
        operationId: 'setExperimentalFeatures',
        method: 'PUT',
        path,
        auth: 'admin',
        body: Type.Object({
          features: Type.Record(Type.String(), Type.Boolean(), { minProperties: 1, maxProperties: 100 }),
        }),
        response: nothing,
      },
      async ({ params: { userId }, body }) => {
        await users.get(userId);
        for (const [name, isOn] of Object.entries(body.features)) {
          if (!Object.hasOwn(features, name))
            throw invalidParam(`'${name}' is not a known experimental feature`);
          if (!isOn) throw invalidParam(`'${name}' is on for all users and cannot be turned off`);
        }
        return {};
      },
    ),
  ];
}

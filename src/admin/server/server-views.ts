import type { Route } from '../../kernel/http/index.ts';
import type { DailyFigures } from '../../statistics/index.ts';
import { dailyStatisticsRoute } from './daily-statistics-route.ts';
import { type EffectiveOption, effectiveConfigurationRoute } from './effective-configuration-route.ts';
import { type OverviewDeps, overviewRoute } from './overview-route.ts';

export interface ServerViewsDeps extends OverviewDeps {
  readonly dailyFigures: DailyFigures;
  readonly effectiveOptions: () => readonly EffectiveOption[];
}

/** Opens the parts of the admin API that show the state of the whole server. */
export function openServerViews(deps: ServerViewsDeps): {
  readonly routes: readonly Route[];
  /** Ends the measurement of the process. */
  readonly stop: () => void;
} {
  return {
    routes: [
      overviewRoute(deps),
      dailyStatisticsRoute(deps.dailyFigures),
      effectiveConfigurationRoute(deps.effectiveOptions),
    ],
    stop: () => deps.processReading.stop(),
  };
}

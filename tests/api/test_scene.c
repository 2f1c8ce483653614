/* The scene without anything failing. */

#include "scene.h"

TEST_EACH(ApiScene, GivesTheRightBits, scene_kind_count, scene_kind_name)
{
    NEED_PTXVM;
    vm_begin("PTXVM_CHECK=all");
    scene_play(&scene_kinds[index], NULL, 1);
    scene_play(&scene_kinds[index], "vm:sm_90a", 2);
    vm_end();
}
